"""A local HTTP server that plays the endpoints of model APIs: scripted answers, and every fault that endpoints have.

with serve(said("openai", text="Rain.")) as server:
    spec = ModelSpec("test", "openai", "test-model", base_url_of(server, "openai"))
"""

from tests.providers.server.formats import (
    APIS,
    Api,
    Call,
    Usage,
    base_url_of,
    blocks_of,
    call_in_pieces,
    error_document,
    error_event,
    models_document,
    said,
    whole_document,
)
from tests.providers.server.script import (
    CUT,
    HANG,
    MARK,
    RESET,
    Answer,
    Pause,
    Piece,
    Request,
    Signal,
    Tell,
    document,
    page,
)
from tests.providers.server.server import Server, serve

__all__ = [
    "APIS",
    "CUT",
    "HANG",
    "MARK",
    "RESET",
    "Answer",
    "Api",
    "Call",
    "Pause",
    "Piece",
    "Request",
    "Server",
    "Signal",
    "Tell",
    "Usage",
    "base_url_of",
    "blocks_of",
    "call_in_pieces",
    "document",
    "error_document",
    "error_event",
    "models_document",
    "page",
    "said",
    "serve",
    "whole_document",
]
