"""The hosted models that docs, help texts and examples name. Vendors retire models: replace a name here and where
`tests/test_example_models.py` finds it."""

OPENAI_MODEL = "gpt-6-luna"
ANTHROPIC_MODEL = "claude-sonnet-5-5"

EXAMPLE_MODELS = (OPENAI_MODEL, ANTHROPIC_MODEL)
