"""Many counting queries at once: mechanisms whose largest error is small."""
