"""Where rows come from: the only folder that meets other engines.

An engine turns a table of (user, item) rows into the distinct users of each item. It knows no noise.
"""
