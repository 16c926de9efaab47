"""Results to text, JSON and other formats: pure functions, one file per format."""
