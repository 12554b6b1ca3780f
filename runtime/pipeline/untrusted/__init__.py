"""What a config names, whoever wrote it: files are read, patterns matched, with bounds."""
