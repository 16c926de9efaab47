"""Tests of client programs' configuration."""
