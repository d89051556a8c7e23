"""Calls in the text of an answer: the forms that are found, and ordinary answers that are none."""

from __future__ import annotations

from itertools import product

from tests.tables import each_row
from workbench.grading.endpoint_faults import TextCall, calls_after_thoughts, calls_in_text, intended_tool
from workbench.trajectory.events import JsonValue, ToolDefinition

SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "required": ["city"],
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
}
TOOLS = (ToolDefinition("get_weather", "Weather", SCHEMA), ToolDefinition("list_all", "All", {"type": "object"}))
ARGS = '{"city": "Oslo"}'
JSON = f'{{"name": "get_weather", "arguments": {ARGS}}}'
LLAMA = JSON.replace("arguments", "parameters")
PARAMETER = "<parameter=city>\nOslo\n</parameter>"

FORMS = {
    "Hermes": f"<tool_call>\n{JSON}\n</tool_call>",
    "Hermes after words": f"Let me look.\n<tool_call>{JSON}</tool_call>",
    "Hermes before words": f"<tool_call>{JSON}</tool_call>\nI have asked.",
    "Hermes in Python's notation": "<tool_call>{'name': 'get_weather', 'arguments': {'city': 'Oslo'}}</tool_call>",
    "Hermes without an end": f"<tool_call>{JSON}",
    "Hermes in a fence": f"```xml\n<tool_call>{JSON}</tool_call>\n```",
    "fenced JSON": f"```json\n{JSON}\n```",
    "two fences": f"```json\n{JSON}\n```\n\n```\n{LLAMA}\n```",
    "bare JSON": JSON,
    "bare parameters": LLAMA,
    "bare list": f"[{JSON}]",
    "bare lines": f"{JSON}\n{JSON}",
    "bare, with semicolons": f"{JSON}; {LLAMA}",
    "OpenAI": f'{{"type": "function", "function": {JSON}}}',
    "OpenAI's list": f'{{"tool_calls": [{JSON}]}}',
    "arguments as text": '{"name": "get_weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}',
    "pythonic": '[get_weather(city="Oslo")]',
    "Python": 'get_weather(city="Oslo")',
    "Python by place": 'get_weather("Oslo")',
    "fenced Python": "```python\nget_weather(city='Oslo')\n```",
    "Gemma": '```tool_code\nprint(get_weather(city="Oslo"))\n```',
    "FunctionGemma": "<start_function_call>call:get_weather{city:<escape>Oslo<escape>}<end_function_call>",
    "Gemma 4": '<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|>',
    "Llama 3": f"<function=get_weather>{ARGS}</function>",
    "Llama 3.1": f"<|python_tag|>{LLAMA}<|eom_id|>",
    "Llama 3.1 built in": '<|python_tag|>get_weather.call(city="Oslo")',
    "Qwen3 Coder": f"<tool_call>\n<function=get_weather>\n{PARAMETER}\n</function>\n</tool_call>",
    "Mistral": f"[TOOL_CALLS][{JSON}]</s>",
    "Mistral 11": f"[TOOL_CALLS]get_weather{ARGS}",
    "Mistral 13": f"[TOOL_CALLS]get_weather[CALL_ID]abc123456[ARGS]{ARGS}",
    "GLM": "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>",
    "ReAct": f"Thought: I need it.\nAction: get_weather\nAction Input: {ARGS}",
    "ReAct with a made up result": f"Action: get_weather\nAction Input: {ARGS}\nObservation: sun\nFinal Answer: sun",
    "ReAct in JSON": f'Action:\n```json\n{{"action": "get_weather", "action_input": {ARGS}}}\n```',
    "gpt-oss": f"<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{ARGS}<|call|>",
    "gpt-oss without marks": f"commentary to=functions.get_weather json{ARGS}",
    "DeepSeek V3": f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{ARGS}\n```",
    "DeepSeek V3.1": f"<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{ARGS}<｜tool▁call▁end｜>",
    "Kimi": f"<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{ARGS}<|tool_call_end|>",
    "Claude": '<function_calls><invoke name="get_weather"><parameter name="city">Oslo</parameter></invoke>',
    "Granite": f"<|tool_call|>[{JSON}]",
    "Phi": f"functools[{JSON}]",
    "Command R": '<|START_ACTION|>[{"tool_name": "get_weather", "parameters": {"city": "Oslo"}}]<|END_ACTION|>',
    "Mistral, cut off": f"[TOOL_CALLS][{JSON}",
    "DeepSeek V3.2": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">'
        "Oslo</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"
    ),
    "Step": (
        '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">'
        '<steptml:parameter name="city">Oslo</steptml:parameter></steptml:invoke><｜tool_call_end｜>'
    ),
    "a function with a name": f'<function name="get_weather">{ARGS}</function>',
    "in tags of its own": f"<tools>\n{JSON}\n</tools>",
    "OpenAI's older form": f'{{"function_call": {JSON}}}',
    "after thoughts": f"<think>list_all would do, too.</think>\n{JSON}",
    "after thoughts that the prompt began": f"list_all would do, too.</think>{JSON}",
}


@each_row("text", FORMS.values())
def test_a_call_is_found_in_each_form(text: str) -> None:
    assert calls_in_text(text, TOOLS) == (TextCall("get_weather", {"city": "Oslo"}),)


def test_a_call_has_typed_arguments_and_several_calls_are_found() -> None:
    days = "<parameter=days>3</parameter>"
    text = f"<function=get_weather>{PARAMETER}{days}</function><function=list_all></function>"
    assert calls_in_text(text, TOOLS) == (
        TextCall("get_weather", {"city": "Oslo", "days": 3}),
        TextCall("list_all", {}),
    )
    assert calls_in_text('<|tool_call>call:get_weather{days:3,city:<|"|>Os, lo<|"|>}', TOOLS) == (
        TextCall("get_weather", {"days": 3, "city": "Os, lo"}),
    )


def test_after_a_mark_a_call_without_arguments_needs_none_written() -> None:
    assert calls_in_text('<tool_call>{"name": "list_all"}</tool_call>', TOOLS) == (TextCall("list_all", {}),)
    assert calls_in_text('[TOOL_CALLS][{"name": "list_all"}]', TOOLS) == (TextCall("list_all", {}),)
    assert calls_in_text('<tool_call>{"name": "get_weather"}</tool_call>', TOOLS) == ()


def test_after_a_mark_arguments_need_not_be_valid() -> None:
    for text in (
        '<tool_call>{"name": "get_weather", "arguments": {"town": "Oslo"}}</tool_call>',
        "<tool_call>{'name': 'get_weather', 'arguments': {'town': 'Oslo'}}</tool_call>",
        '[TOOL_CALLS]get_weather[ARGS]{"town": "Oslo"}',
        '<|python_tag|>get_weather(town="Oslo")',
        "<function=get_weather><parameter=town>Oslo</parameter></function>",
    ):
        assert calls_in_text(text, TOOLS) == (TextCall("get_weather", {"town": "Oslo"}),)


def test_only_a_marked_call_that_ends_the_thoughts_is_one() -> None:
    call = f"<tool_call>{JSON}</tool_call>"
    assert calls_after_thoughts(f"I need it.\n{call}\n", TOOLS) == (TextCall("get_weather", {"city": "Oslo"}),)
    for thoughts in (f"{call} is what I could write.", JSON, f"`{call}`", "list_all would do."):
        assert calls_after_thoughts(thoughts, TOOLS) == ()


BLOCKS = [
    f"```json\n{JSON}\n```",
    f"```xml\n<tool_call>{JSON}</tool_call>\n```",
    "```python\nresult = get_weather(city='Oslo')\nprint(result)\n```",
    "```python\nget_weather(city='Oslo')\n```",
    f"`{JSON}`",
    f"`<tool_call>{JSON}</tool_call>`",
    f'"<tool_call>{JSON}</tool_call>"',
    "`get_weather(city='Oslo')`",
    "`[TOOL_CALLS]` followed by a list of objects, such as `get_weather` with its arguments",
    "```json\n" + '{"name": "get_weather", "description": "Weather", "parameters": {"type": "object"}}' + "\n```",
    "```\nAction: get_weather\nAction Input: " + ARGS + "\n```",
    "the tool `get_weather`, whose one required argument is `city`",
    "```xml\n<tools>\n  <tool name='get_weather'><parameter name='city'>text</parameter></tool>\n</tools>\n```",
]
PROSE = [
    ("To do that, use this:\n\n", ""),
    ("Here is what the request looks like:\n\n", "\n\nThe server answers with the weather of get_weather."),
    ("", "\n\nThis is how Hermes writes a call of get_weather."),
    ("1. Start the server.\n2. Send this: ", "\n3. Read the answer."),
    ("> A quote of the docs says: ", "\n\nIt may differ for other models."),
    ("### Example\n\nThe model calls a tool so: ", " and then waits.\n\n- `city` is a text\n- `days` is a number"),
    ("Parsers look for a mark. ", " A parser that is off leaves it in the content."),
    ("<think>I could call it.</think>You can write ", " yourself."),
    ("```python\nimport json\n```\nThen: ", "\n```python\njson.dumps({})\n```"),
    ("| form | example |\n|---|---|\n| one | ", " |"),
    ("Das Format ist einfach: ", " Mehr ist es nicht."),
    ("Assistant: I would answer ", " here, and nothing else."),
    ("(", ")"),
    ("Thought: this is only an explanation.\n\nThe call is ", ""),
]
ALONE = [
    '{"city": "Oslo", "temperature": 5}',
    '{"name": "get_weather", "arguments": {"town": "Oslo"}}',
    '{"name": "get_rain", "arguments": {"city": "get_weather"}}',
    '{"name": "get_weather", "description": "Weather", "parameters": {"type": "object"}}',
    '{"name": "get_weather"}',
    '["get_weather", "list_all"]',
    '[{"name": "get_weather", "count": 3}]',
    "```python\nweather = get_weather(city='Oslo')\n```",
    "```python\ndef get_weather(city):\n    return city\n```",
    "```python\nfor city in ['Oslo']:\n    get_weather(city)\n```",
    "```python\nprint(get_weather(city='Oslo'))\n```",
    "```python\nasync def main():\n    await get_weather(city='Oslo')\n```",
    "get_weather",
    "get_weather(city)",
    "get_weather(city=...)",
    "get_weather(city: str, days: int)",
    "get_weather()",
    f"<think>{JSON}</think>It is sunny.",
    f"<think>\n<tool_call>{JSON}</tool_call>",
    "Action: get_weather is what I recommend.",
    "The function get_weather(city='Oslo') returns the weather.",
    "Use `list_all` first.\n\n```bash\ncurl -d '" + JSON + "' localhost\n```",
    "<tool_call>{...}</tool_call> is where get_weather would stand.",
    "<tool_response>get_weather said: sunny</tool_response>",
    '{"name": "list_all"}',
    '<tool>{"name": "list_all"}</tool>',
    "<weather><city>Oslo</city><tool>get_weather</tool></weather>",
]
ORDINARY = [*ALONE, *(f"{before}{block}{after}" for block, (before, after) in product(BLOCKS, PROSE))]


def test_ordinary_answers_about_code_and_tools_are_no_calls() -> None:
    assert len(set(ORDINARY)) >= 200
    assert [text for text in ORDINARY if calls_in_text(text, TOOLS)] == []


@each_row(
    ("written", "meant"),
    [
        ("get_weather<|channel|>commentary", "get_weather"),
        ("functions.get_weather", "get_weather"),
        ("functions.get_weather:0", "get_weather"),
        ("assistant<|channel|>commentary to=functions.get_weather<|constrain|>json", "get_weather"),
        ("get_weather<|message|>{", "get_weather"),
        ("tool:get_weather", "get_weather"),
        ('"get_weather"', "get_weather"),
        ("`get_weather`", "get_weather"),
        ("get_weather\n", "get_weather"),
        ("<function=get_weather>", "get_weather"),
        ("get_weather</tool_call>", "get_weather"),
        ("get_weather()", "get_weather"),
        ("default_api.list_all", "list_all"),
        ("get_weather", None),
        ("get_weather_v2", None),
        ("my_get_weather", None),
        ("weather.get_weather", None),
        ("get_rain", None),
        ("", None),
    ],
)
def test_residue_is_told_from_other_names(written: str, meant: str | None) -> None:
    assert intended_tool(written, [tool.name for tool in TOOLS]) == meant
