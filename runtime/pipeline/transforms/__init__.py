"""What is done to rows between source and sink: Connect's transforms, SQL, expectations."""
