"""A scripted model server over real HTTP: three wire protocols, one script, checks as strict as the real ones.

In a test::

    async with ScriptedServer([Reply("Hello.")]) as server:
        environ = server.environ()          # ANTHROPIC_BASE_URL, OPENAI_BASE_URL, both keys
        ...
        assert server.requests[0].items[-1].text == "hi"

From a thread (pexpect, tmux): ``with ServerThread(script) as server: ...``, the same attributes.
From a process: ``python -m tests.server --script hello --port-file F`` (see ``__main__``).

A *script* is a list of replies, used up one a model call, or a callable ``(Request) -> reply`` (it may be async).
A *reply* is one of `Reply`, `HttpError`, `StreamError`, `Cut`, `Hang`, `RawStream`; none of them knows a protocol.

The server speaks Anthropic ``/v1/messages`` (``/v1/messages/count_tokens``), OpenAI ``/v1/responses``
(``/v1/responses/input_tokens``), Chat Completions ``/v1/chat/completions``, and ``/v1/models``; each also without
``/v1``. Whatever a real API would refuse gets a 400 in that provider's wording and does not use up a reply;
`Request.refused` holds the text. `server.requests` are the model calls in order, refused ones included;
`server.all_requests` also the lists and counts. Times are seconds of the monotonic clock, which on Linux is the same
for all processes: `Request.ended` of one call and `Request.received` of the next are the agent's own time.

Keyword options of the server (`Options`): `api_key`, `window`, `max_output`, `listed_window`, `check_thinking`,
`one_system`, `alternate`, `refuse`, `models`, `account`.

A provider's own compaction is a model call like any other, and the reply's text what it hides or says
(`Request.is_compaction`): Anthropic's field `compaction`, OpenAI's `compaction_trigger` and ``/v1/responses/compact``.
`context_management` is done by the server itself: OpenAI's over its threshold, Anthropic's ``clear_tool_uses``.
"""

from tests.server.options import Options
from tests.server.reply import Call, Cut, Hang, HttpError, RawStream, Reply, Script, Search, StreamError, Tokens
from tests.server.request import Item, Request
from tests.server.server import ScriptedServer, ServerThread

__all__ = [
    "Call",
    "Cut",
    "Hang",
    "HttpError",
    "Item",
    "Options",
    "RawStream",
    "Reply",
    "Request",
    "Script",
    "ScriptedServer",
    "Search",
    "ServerThread",
    "StreamError",
    "Tokens",
]
