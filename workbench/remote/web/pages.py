"""The pages of `workbench serve`. They load nothing from anywhere but this server."""

from __future__ import annotations

from html import escape

_ICON = (
    "data:image/svg+xml,<svg xmlns='http:%2F%2Fwww.w3.org/2000/svg' viewBox='0 0 16 16'>"
    "<rect width='16' height='16' rx='3' fill='%2315181d'/>"
    "<path d='M3.5 4.5 7 8l-3.5 3.5M8.5 12H13' stroke='%237fb4ff' stroke-width='2' fill='none'/></svg>"
)

_LOOK = """
@font-face { font-family: "Roboto Mono"; src: url("STATICfonts/RobotoMono-VariableFont_wght.ttf"); }
@font-face { font-family: "Roboto Mono"; font-style: italic;
  src: url("STATICfonts/RobotoMono-Italic-VariableFont_wght.ttf"); }
html, body { margin: 0; height: 100%; background: #15181d; color: #d3d8df; overflow: hidden; }
body { font: 15px/1.5 "Roboto Mono", Monaco, "Courier New", monospace; }
main { position: fixed; inset: 0; display: grid; place-content: center; justify-items: center; padding: 2em;
  text-align: center; background: #15181d; z-index: 10; }
main p { max-width: 60ch; margin: .4em 0; }
a { color: #7fb4ff; }
.textual-terminal { position: fixed; inset: 0; }
.textual-terminal .xterm { height: 100%; }
.xterm .xterm-viewport { overflow: hidden !important; }
body.-first-byte .opening, .closed { display: none; }
body.-closed .closed { display: grid; }
"""

SCRIPT = """
// Keys go to the app at once, and again whenever the page comes back.
function focus() {
  const field = document.querySelector(".xterm-helper-textarea");
  if (field) field.focus();
}
window.addEventListener("load", focus);
window.addEventListener("focus", focus);

// Ctrl+V pastes what the browser has, as it does elsewhere: the terminal would send it as a key.
window.addEventListener("keydown", (key) => {
  if (key.ctrlKey && !key.altKey && !key.metaKey && key.key.toLowerCase() === "v") key.stopPropagation();
}, true);

// The server says why it closes the connection. Without a word, it is gone, or what is in between.
window.WebSocket = class extends WebSocket {
  constructor(...where) {
    super(...where);
    this.addEventListener("close", (closed) => {
      document.title = `${document.title} (ended)`;
      if (closed.reason) document.querySelector("#why").textContent = closed.reason;
    });
  }
};
"""
"""What a page does beside the terminal's own script."""

SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every answer."""


def policy(socket: str) -> str:
    """Return what a page may load: its own scripts, fonts and styles, those that its terminal makes too, and one
    WebSocket. Nothing on other machines."""
    connects = socket or "'none'"
    return (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; "
        f"img-src 'self' data:; connect-src {connects}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def app_page(static: str, socket: str, font_size: int, *, read_only: bool) -> str:
    """Return the page with the app. `static` is the address of its files, `socket` that of its WebSocket."""
    seen = " (read-only)" if read_only else ""
    left = "" if read_only else "Runs under way were stopped; what had finished is in the history."
    return _page(
        f"Workbench{seen}",
        f"""<main class="opening"><p>Opening Workbench …</p></main>
<main class="closed"><p>This app has ended.</p>
<p id="why">The connection to its server broke, or the server is gone.</p>
<p>{left}</p>
<p><a href="./">Open it again</a></p></main>
<div class="textual-terminal" id="terminal" data-session-websocket-url="{escape(socket)}"
 data-font-size="{font_size}"></div>""",
        head=f'<link rel="stylesheet" href="{escape(static)}css/xterm.css">\n'
        f'<link rel="preload" as="font" crossorigin href="{escape(static)}fonts/RobotoMono-VariableFont_wght.ttf">\n'
        f'<script src="{escape(static)}js/textual.js"></script>\n'
        '<script src="page.js" defer></script>\n',
        static=static,
    )


def entry_page(path: str) -> str:
    """Return the page that goes on to the app, whose address has no token. The page itself goes on, and not an answer
    of the server: a browser that came by a link of another page would keep the new cookie to itself."""
    return _page(
        "Workbench",
        f'<main><p><a href="{escape(path)}">Open Workbench</a></p></main>',
        head=f'<meta http-equiv="refresh" content="0; url={escape(path)}">\n',
    )


def message_page(*lines: str) -> str:
    """Return a page that says something, and leads nowhere."""
    said = "\n".join(f"<p>{escape(line)}</p>" for line in lines)
    return _page("Workbench", f"<main>{said}</main>")


def _page(title: str, body: str, *, head: str = "", static: str | None = None) -> str:
    look = _LOOK.replace("STATIC", static) if static is not None else _LOOK[_LOOK.index("html, body") :]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<link rel="icon" href="{_ICON}">\n{head}<style>{look}</style></head>\n<body>{body}</body></html>\n'
    )
