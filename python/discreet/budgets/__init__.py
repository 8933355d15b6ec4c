"""What has been spent: budgets in memory and in a file, and the exchange that pays for what it gets."""
