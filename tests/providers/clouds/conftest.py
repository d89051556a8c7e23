"""Tests of clouds read no credentials of this machine, and request none from a service."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_OF_CLOUDS = ("AWS_", "AZURE_", "GOOGLE_", "ANTHROPIC_", "OPENAI_", "CLOUD_ML", "CLOUDSDK_", "IDENTITY_", "MSI_")


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in os.environ:
        if name.startswith(_OF_CLOUDS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "aws-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "aws-credentials"))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
