"""The known endpoints: how each is reached, and which variable usually holds its key."""

from __future__ import annotations

from urllib.parse import urlsplit

from workbench.config.models import (
    ANTHROPIC_URL,
    OPENAI_URL,
    OWN_URLS,
    ModelSpec,
    Provider,
    is_loopback,
    usual_key_variable,
)
from workbench.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preset:
    """A known endpoint. `name` is what the command line calls it, `title` what people call it."""

    name: str
    title: str
    base_url: str
    api_key_env: str | None = None
    provider: Provider = "openai"

    @property
    def is_local(self) -> bool:
        """Whether it is a server on this machine, at its usual port."""
        return is_loopback(self.base_url)

    @property
    def place(self) -> str:
        """Host and port."""
        return urlsplit(self.base_url).netloc

    def model_name(self, model: str) -> str | None:
        """Return the name by which a model here can be run without a `workbench.toml`; `None` if it needs one, because
        only a named model can be given another key than the vendor's own."""
        if self.api_key_env != usual_key_variable(self.base_url):
            return None
        at = "" if self.base_url == OWN_URLS[self.provider] else f"@{self.base_url}"
        return f"{self.provider}:{model}{at}"

    def spec(self, model: str = "") -> ModelSpec:
        """Return how a model here is reached."""
        return ModelSpec(self.title, self.provider, model, self.base_url, self.api_key_env, origin="command line")


PRESETS = (
    Preset("openai", "OpenAI", OPENAI_URL, "OPENAI_API_KEY"),
    Preset("anthropic", "Anthropic", ANTHROPIC_URL, "ANTHROPIC_API_KEY", "anthropic"),
    Preset("gemini", "Gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    Preset("mistral", "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    Preset("groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    Preset("deepseek", "DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    Preset("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    Preset("ollama", "Ollama", "http://localhost:11434/v1"),
    Preset("lm-studio", "LM Studio", "http://localhost:1234/v1"),
    Preset("vllm", "vLLM", "http://localhost:8000/v1"),
)
