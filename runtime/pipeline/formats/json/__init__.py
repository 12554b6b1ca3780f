"""JSON: the columns of texts, values that readers must not get or would change."""
