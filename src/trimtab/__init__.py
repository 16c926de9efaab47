"""Trimtab: plan, lint, launch, verify and diagnose vLLM servers."""

__version__ = "0.1.0"
