"""Set-union mechanisms: the items of users with many items each, without counts."""
