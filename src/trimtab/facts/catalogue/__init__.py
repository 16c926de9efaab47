"""Popular models as data, one file per family: their config keys, so that an id works without network."""

FAMILIES = (
    "apertus", "baichuan", "bamba", "bloom", "cohere", "dbrx", "deepseek", "deepseek-llm", "embeddings", "ernie",
    "exaone", "falcon", "gemma", "glm", "gpt-oss", "gpt2", "gptj", "granite", "hunyuan", "internlm", "internvl",
    "jamba", "kimi", "laguna", "lfm2", "ling", "llama", "llava", "longcat", "mamba", "mellum", "mimo", "minicpm",
    "minimax", "mistral", "mixtral", "mpt", "nemotron", "olmo", "opt", "phi", "pythia", "qwen-vl", "qwen1",
    "qwen1.5", "qwen2", "qwen2-moe", "qwen2.5", "qwen3", "qwen3-moe", "qwen3-next", "qwen3.5", "qwen3.8", "seed",
    "smollm", "solar", "stablelm", "starcoder", "step", "trinity", "whisper", "yi",
)  # fmt: skip
"""The files of this folder."""
