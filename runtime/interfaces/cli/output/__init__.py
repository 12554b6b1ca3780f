"""Prints what verbs answer: sections for people, documents for programs, and the words in them."""
