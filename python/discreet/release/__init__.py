"""What is published: rows with their guarantee, their pictures, and the files they are written to."""
