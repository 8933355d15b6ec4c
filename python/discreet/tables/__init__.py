"""Tables in memory: counts of users by item, and items by user. SENSITIVE."""
