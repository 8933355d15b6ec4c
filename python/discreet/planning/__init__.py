"""Before any data: which mechanism a verb takes, and what a mechanism will do."""
