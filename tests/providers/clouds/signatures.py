"""Signatures of AWS (version 4) as a server checks them, by the standard library alone.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import parse_qsl, quote

from tests.providers.server import Request


def signed_parts(request: Request) -> dict[str, str]:
    """Return the Credential, SignedHeaders and Signature of a request."""
    scheme, _, rest = request.headers["authorization"].partition(" ")
    assert scheme == "AWS4-HMAC-SHA256"
    return dict(part.strip().split("=", 1) for part in rest.split(","))


def is_signed(request: Request, secret: str, region: str, service: str) -> bool:
    """Return whether a request is signed with this key for this region and service."""
    parts = signed_parts(request)
    _, day, *scope = parts["Credential"].split("/")
    assert scope == [region, service, "aws4_request"]
    path, _, query = request.path.partition("?")
    pairs = sorted((quote(k, safe="-_.~"), quote(v, safe="-_.~")) for k, v in parse_qsl(query, keep_blank_values=True))
    names = parts["SignedHeaders"].split(";")
    canonical = [
        request.method,
        quote(path, safe="/-_.~"),  # a second time: all services but S3 want it so
        "&".join(f"{name}={value}" for name, value in pairs),
        *(f"{name}:{' '.join(request.headers[name].split())}" for name in names),
        "",
        ";".join(names),
        hashlib.sha256(request.body).hexdigest(),
    ]
    hashed = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
    to_sign = "\n".join(["AWS4-HMAC-SHA256", request.headers["x-amz-date"], "/".join([day, *scope]), hashed])
    key = f"AWS4{secret}".encode()
    for step in (day, *scope):
        key = hmac.digest(key, step.encode(), "sha256")
    return hmac.compare_digest(hmac.new(key, to_sign.encode(), "sha256").hexdigest(), parts["Signature"])
