"""Tests of what scripts/ holds beyond a few lines."""
