"""What a comparison of two back ends is made of: prompts, checks, paired figures, differences of texts, a judge."""
