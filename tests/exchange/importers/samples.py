"""A small file of each form as bytes, by the form's name and the file's extension."""

from __future__ import annotations

import json
from typing import Any

WEATHER_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

OPENAI = {
    "model": "gpt-4o",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Is it raining in Oslo?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": '{"rain":true}'},
        {"role": "assistant", "content": "Yes."},
    ],
    "tools": [
        {
            "type": "function",
            "function": {"name": "get_weather", "description": "The weather.", "parameters": WEATHER_SCHEMA},
        }
    ],
}

RESPONSES: dict[str, dict[str, Any]] = {
    "request": {
        "model": "gpt-5-mini",
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Is it raining in Oslo or Rome?"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": '{"city": "Oslo"}'},
            {"type": "function_call", "call_id": "c2", "name": "get_weather", "arguments": '{"city": "Rome"}'},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "function_call_output", "call_id": "c2", "output": "sun"},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "rain"}]},
        ],
        "tools": [{"type": "function", **OPENAI["tools"][0]["function"], "strict": True}, {"type": "web_search"}],  # type: ignore[index]
    },
    "response": {
        "model": "gpt-5-mini-2025-08-07",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "In Oslo."}]}],
        "usage": {"input_tokens": 90, "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 3}},
    },
}

ANTHROPIC = {
    "model": "claude-sonnet-4-5",
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [
        {"role": "user", "content": "Is it raining in Oslo?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I look.", "signature": "s"},
                {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Oslo"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "rain"}]}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]},
    ],
    "tools": [{"name": "get_weather", "description": "The weather.", "input_schema": WEATHER_SCHEMA}],
}

TABLE = b"""question,expected_tool,expected_args,labels
Is it raining in Oslo?,get_weather,"{""city"": ""Oslo""}","rain, north"
Hello!,,,
"""
FIELDS = {"user": "question", "tool": "expected_tool", "args": "expected_args", "tags": "labels"}

PROMPTFOO = """
prompts: ['Is it raining in {{city}}?']
providers:
  - id: openai:chat:gpt-4o-mini
    config:
      temperature: 0
      tools:
        - type: function
          function: {name: get_weather, parameters: {type: object, properties: {city: {type: string}}}}
defaultTest:
  assert: [{type: is-valid-openai-tools-call}]
tests:
  - description: Oslo
    vars: {city: Oslo}
    assert:
      - {type: tool-call-f1, value: [get_weather], threshold: 0.9}
      - {type: javascript, value: "JSON.parse(output[0].function.arguments).city === context.vars.city"}
      - {type: icontains, value: rain}
  - vars: {city: [Rome, Bergen]}
    assert:
      - {type: 'trajectory:tool-args-match', value: {name: get_weather, args: {city: '{{city}}'}, mode: exact}}
      - {type: javascript, value: 'output.length > 3'}
      - {type: cost, threshold: 0.1}
"""

OSLO_TEST = {
    "description": "Oslo",
    "vars": {"city": "Oslo"},
    "assert": [
        {"type": "tool-call-f1", "value": ["get_weather"]},
        {"type": "javascript", "value": "JSON.parse(output[0].function.arguments).city === context.vars.city"},
    ],
    "options": {},
}
OSLO_RESULT: dict[str, Any] = {
    "prompt": {"raw": "Rain in Oslo?", "label": "Rain in {{city}}?"},
    "provider": {"id": "openai:chat:gpt-4o"},
    "response": {
        "output": [{"id": "c1", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}],
        "tokenUsage": {"prompt": 20, "completion": 10, "total": 30},
    },
    "latencyMs": 17,
    "success": True,
    "testCase": OSLO_TEST,
    "testIdx": 0,
    "vars": {"city": "Oslo"},
}
MILAN = "I look.\n" + json.dumps({"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Milan"}})
PROMPTFOO_RESULTS = {
    "evalId": "e",
    "results": {
        "version": 3,
        "results": [
            OSLO_RESULT,
            {
                **OSLO_RESULT,
                "provider": {"id": "anthropic:messages:claude-sonnet-4-5"},
                "response": {"output": MILAN},
                "success": False,
            },
            {
                **OSLO_RESULT,
                "prompt": {"raw": "Rain in Rome?"},
                "response": {"error": "API error: 401"},
                "success": False,
                "testCase": {"vars": {"city": "Rome"}, "assert": [{"type": "icontains", "value": "rain"}]},
                "testIdx": 1,
            },
        ],
    },
    "config": {
        "prompts": ["Rain in {{city}}?"],
        "providers": [{"id": "openai:chat:gpt-4o", "config": {"tools": OPENAI["tools"]}}],
        "tests": "file://tests.csv",
    },
}


def attribute(key: str, value: object) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}


def exported(*spans: dict[str, Any]) -> dict[str, Any]:
    """Return an export of one trace, with spans given by their attributes."""
    written = [
        {
            "traceId": "c5ed1e6b",
            "spanId": f"{number:02}",
            "startTimeUnixNano": f"{1_795_379_509_000_000_000 + number}",
            "endTimeUnixNano": f"{1_795_379_509_250_000_000 + number}",
            "attributes": [attribute(key, value) for key, value in span.items()],
        }
        for number, span in enumerate(spans)
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": written}]}]}


ASKED = [{"role": "user", "parts": [{"type": "text", "content": "Is it raining in Oslo?"}]}]
CALLED = [
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": {"city": "Oslo"}}],
        "finish_reason": "tool_call",
    }
]
OTEL = exported(
    {"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "gpt-4o"},
    {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
        "gen_ai.input.messages": ASKED,
        "gen_ai.output.messages": CALLED,
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.tool.definitions": [{"type": "function", "name": "get_weather", "parameters": WEATHER_SCHEMA}],
    },
    {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "rain"},
)


CITY_CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
OPENLLMETRY = exported(
    {
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.prompt.0.role": "system",
        "gen_ai.prompt.0.content": "Be brief.",
        "gen_ai.prompt.1.role": "user",
        "gen_ai.prompt.1.content": [{"type": "text", "text": "Is it raining in Oslo?"}],
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.finish_reason": "tool_calls",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "get_weather",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"city": "Oslo"}',
        "llm.request.functions.0.name": "get_weather",
        "llm.request.functions.0.parameters": WEATHER_SCHEMA,
        "gen_ai.usage.prompt_tokens": 60,
        "gen_ai.usage.completion_tokens": 9,
    },
    {
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.prompt.0.role": "system",
        "gen_ai.prompt.0.content": "Be brief.",
        "gen_ai.prompt.1.role": "user",
        "gen_ai.prompt.1.content": [{"type": "text", "text": "Is it raining in Oslo?"}],
        "gen_ai.prompt.2.role": "assistant",
        "gen_ai.prompt.2.tool_calls.0.id": "c1",
        "gen_ai.prompt.2.tool_calls.0.name": "get_weather",
        "gen_ai.prompt.2.tool_calls.0.arguments": '{"city": "Oslo"}',
        "gen_ai.prompt.3.role": "tool",
        "gen_ai.prompt.3.content": "rain",
        "gen_ai.prompt.3.tool_call_id": "c1",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "Yes.",
        "llm.request.functions.0.name": "get_weather",
        "llm.request.functions.0.parameters": WEATHER_SCHEMA,
        "gen_ai.usage.prompt_tokens": 80,
        "gen_ai.usage.completion_tokens": 2,
    },
)

VERCEL_ASKED = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Is it raining in Oslo?"}]},
]
VERCEL_CALL = {"toolCallId": "c1", "toolName": "get_weather", "input": {"city": "Oslo"}}
VERCEL_TOOL = {"type": "function", "name": "get_weather", "inputSchema": WEATHER_SCHEMA}
VERCEL = exported(
    {
        "ai.operationId": "ai.generateText",
        "ai.prompt": {"system": "Be brief.", "prompt": "Is it raining in Oslo?"},
        "ai.response.text": "Yes.",
        "ai.usage.promptTokens": 140,
        "ai.usage.completionTokens": 11,
    },
    {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.model.id": "gpt-4o",
        "ai.prompt.messages": VERCEL_ASKED,
        "ai.prompt.tools": [json.dumps(VERCEL_TOOL)],
        "ai.response.toolCalls": [VERCEL_CALL],
        "ai.usage.promptTokens": 60,
        "ai.usage.completionTokens": 9,
    },
    {"ai.operationId": "ai.toolCall", "ai.toolCall.id": "c1", "ai.toolCall.result": "rain"},
    {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.model.id": "gpt-4o",
        "ai.prompt.messages": [
            *VERCEL_ASKED,
            {"role": "assistant", "content": [{"type": "tool-call", **VERCEL_CALL}]},
            {
                "role": "tool",
                "content": [
                    {"type": "tool-result", "toolCallId": "c1", "output": {"type": "text", "value": "rain"}},
                ],
            },
        ],
        "ai.prompt.tools": [json.dumps(VERCEL_TOOL)],
        "ai.response.text": "Yes.",
        "ai.usage.promptTokens": 80,
        "ai.usage.completionTokens": 2,
    },
)

LOGFIRE_SAID = [*OPENAI["messages"][:3], {"role": "tool", "tool_call_id": "c1", "content": "rain"}]
LOGFIRE = exported(
    {
        "gen_ai.request.model": "gpt-4o",
        "request_data": {"messages": LOGFIRE_SAID[:2], "tools": OPENAI["tools"], "model": "gpt-4o"},
        "response_data": {"message": {"role": "assistant", "content": None, "tool_calls": [CITY_CALL]}},
        "gen_ai.usage.input_tokens": 60,
        "gen_ai.usage.output_tokens": 9,
    },
    {
        "gen_ai.request.model": "gpt-4o",
        "request_data": {"messages": LOGFIRE_SAID, "tools": OPENAI["tools"], "model": "gpt-4o"},
        "response_data": {"message": {"role": "assistant", "content": "Yes."}},
        "gen_ai.usage.input_tokens": 80,
        "gen_ai.usage.output_tokens": 2,
    },
)

PYDANTIC_ASKED = [
    {"role": "system", "content": "Be brief.", "event.name": "gen_ai.system.message"},
    {"role": "user", "content": "Is it raining in Oslo?", "event.name": "gen_ai.user.message"},
]
PYDANTIC_CALLED = {"role": "assistant", "tool_calls": [CITY_CALL]}
PYDANTIC_REST = [
    {**PYDANTIC_CALLED, "event.name": "gen_ai.assistant.message"},
    {"role": "tool", "id": "c1", "name": "get_weather", "content": "rain", "event.name": "gen_ai.tool.message"},
]
PYDANTIC_PARAMETERS = {"function_tools": [{"name": "get_weather", "parameters_json_schema": WEATHER_SCHEMA}]}
PYDANTIC_AI = exported(
    {
        "gen_ai.request.model": "gpt-4o",
        "model_request_parameters": PYDANTIC_PARAMETERS,
        "events": [*PYDANTIC_ASKED, {"event.name": "gen_ai.choice", "index": 0, "message": PYDANTIC_CALLED}],
        "gen_ai.usage.input_tokens": 60,
        "gen_ai.usage.output_tokens": 9,
    },
    {
        "gen_ai.request.model": "gpt-4o",
        "model_request_parameters": PYDANTIC_PARAMETERS,
        "events": [
            *PYDANTIC_ASKED,
            *PYDANTIC_REST,
            {"event.name": "gen_ai.choice", "message": {"role": "assistant", "content": "Yes."}},
        ],
        "gen_ai.usage.input_tokens": 80,
        "gen_ai.usage.output_tokens": 2,
    },
    {
        "agent_name": "agent",
        "all_messages_events": [
            *PYDANTIC_ASKED,
            *PYDANTIC_REST,
            {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "Yes."},
        ],
        "gen_ai.usage.input_tokens": 140,
        "gen_ai.usage.output_tokens": 11,
    },
)


def session_line(number: int, role: str, content: object, **more: object) -> dict[str, object]:
    message = {"role": role, "content": content, **({"model": "claude-sonnet-4-5"} if role == "assistant" else {})}
    return {
        "type": role,
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number else None,
        "sessionId": "s",
        "timestamp": "2026-11-22T10:00:00.000Z",
        "message": message,
        **more,
    }


SESSION = [
    {"type": "summary", "summary": "Weather"},
    session_line(0, "user", "Is it raining in Oslo?"),
    session_line(1, "assistant", [{"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Oslo"}}]),
    session_line(2, "user", [{"type": "tool_result", "tool_use_id": "t1", "content": "rain"}]),
    session_line(3, "assistant", [{"type": "text", "text": "Yes."}]),
    session_line(4, "user", "Thanks!"),
    session_line(5, "assistant", [{"type": "text", "text": "You are welcome."}]),
]

AGENTEVALS = {"inputs": {"question": "Is it raining in Oslo?"}, "reference_outputs": OPENAI["messages"][2:]}
AGENTEVALS["outputs"] = {"messages": [{"role": "user", "content": "Is it raining in Oslo?"}, *OPENAI["messages"][2:]]}

BFCL = {
    "id": "simple_0",
    "question": [[{"role": "user", "content": "Is it raining in Oslo?"}]],
    "function": [{"name": "weather.get", "parameters": {**WEATHER_SCHEMA, "type": "dict"}}],
    "ground_truth": [
        {
            "weather.get": {
                "city": ["Oslo", "Oslo, Norway"],
                "days": [1, ""],
                "at": [{"hour": [8, 9], "day": ["", "May 1"]}],
            }
        }
    ],
}


ATIF = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s",
    "agent": {
        "name": "agent",
        "version": "1",
        "model_name": "gpt-4o",
        "tool_definitions": [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER_SCHEMA}}],
    },
    "steps": [
        {"step_id": 1, "source": "system", "message": "Be brief.", "timestamp": "2026-11-22T10:00:00Z"},
        {"step_id": 2, "source": "user", "message": [{"type": "text", "text": "Is it raining in Oslo?"}]},
        {
            "step_id": 3,
            "source": "agent",
            "message": "",
            "reasoning_content": "I look.",
            "tool_calls": [{"tool_call_id": "c1", "function_name": "get_weather", "arguments": {"city": "Oslo"}}],
            "observation": {"results": [{"source_call_id": "c1", "content": "rain"}, {"content": "a bell"}]},
            "metrics": {"prompt_tokens": 30, "completion_tokens": 5, "cached_tokens": 20, "cost_usd": 0.1},
        },
        {"step_id": 4, "source": "system", "message": "Context was compacted."},
        {"step_id": 5, "source": "agent", "message": "Yes.", "llm_call_count": 0},
    ],
    "final_metrics": {"total_prompt_tokens": 30},
}

ARCADE: dict[str, Any] = {
    "arcade_suites": [
        {
            "name": "Weather",
            "tools": [{"name": "Weather_Get", "description": "Gets.", "inputSchema": WEATHER_SCHEMA}],
            "cases": [
                {
                    "name": "Oslo",
                    "system": "Be brief.",
                    "user": "Is it raining in Oslo?",
                    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}],
                    "calls": [{"tool": "Weather.Get", "args": {"city": "Oslo", "days": 3, "unit": None}}],
                    "critics": [
                        {"critic": "BinaryCritic", "class": "BinaryCritic", "field": "city", "weight": "high"},
                        {
                            "critic": "NumericCritic",
                            "class": "NumericCritic",
                            "field": "days",
                            "weight": 0.4,
                            "value_range": [1, 11],
                            "match_threshold": 0.8,
                        },
                        {"critic": "NoneCritic", "class": "NoneCritic", "field": "unit", "weight": 0.0},
                        {"critic": "custom", "class": "MoodCritic", "field": "mood", "weight": 0.5},
                    ],
                    "rubric": {"fail_threshold": 0.85, "warn_threshold": 0.95, "tool_selection_weight": 1.0},
                },
            ],
        }
    ],
    "problems": [{"name": "broken", "error": "ValueError: no"}],
}


_TOOL_OF_EXAMPLE: dict[str, Any] = {
    "tool_name": "get_weather",
    "tool_description": "Gets the weather.",
    "tool_schema": WEATHER_SCHEMA,
}
TOOLVALUATOR = [
    {
        "user_query": "Weather in Oslo?",
        **_TOOL_OF_EXAMPLE,
        "expected_should_call": True,
        "expected_tool_name": "get_weather",
        "expected_arguments": {"city": "Oslo", "units": None, "near": {"km": 5}},
        "system_prompt": None,
    },
    {"user_query": "What is 2+2?", **_TOOL_OF_EXAMPLE, "expected_should_call": False, "expected_arguments": {}},
    {"user_query": "Any weather?", **_TOOL_OF_EXAMPLE, "expected_should_call": True, "expected_arguments": None},
]


ADK = {
    "eval_set_id": "weather",
    "eval_cases": [
        {
            "eval_id": "oslo",
            "conversation": [
                {
                    "user_content": {"role": "user", "parts": [{"text": "Is it raining in Oslo?"}]},
                    "final_response": {"role": "model", "parts": [{"text": "Yes, it is raining in Oslo."}]},
                    "intermediate_data": {
                        "tool_uses": [{"id": "a1", "name": "get_weather", "args": {"city": "Oslo"}}, {"name": "now"}],
                        "tool_responses": [{"id": "a1", "name": "get_weather", "response": {"rain": True}}],
                        "intermediate_responses": [],
                    },
                },
                {"userContent": {"parts": [{"text": "Thanks!"}]}, "intermediateData": {"invocationEvents": []}},
                {"user_content": {"parts": [{"text": "And in Rome?"}, {"inline_data": {"data": "AA"}}]}},
            ],
            "session_input": {"app_name": "weather", "user_id": "u", "state": {}},
        },
        {"eval_id": "simulated", "conversation_scenario": {"starting_prompt": "Hi", "conversation_plan": "Ask."}},
    ],
}
ADK_OLD = [
    {
        "name": "oslo",
        "data": [
            {
                "query": "Is it raining in Oslo?",
                "expected_tool_use": [{"tool_name": "get_weather", "tool_input": {"city": "Oslo"}}],
                "reference": "Yes.",
            },
            {"query": "Thanks!", "expected_tool_use": [], "reference": "You are welcome."},
        ],
        "initial_session": {"state": {}, "app_name": "weather"},
    }
]

GOLDEN = {
    "input": "Is it raining in Oslo?",
    "actual_output": "Yes, it is.",
    "expected_output": "It is raining.",
    "context": ["Oslo is in Norway."],
    "name": None,
    "tools_called": [{"name": "get_weather", "output": {"rain": True}, "inputParameters": {"city": "Oslo"}}],
    "expected_tools": [{"name": "get_weather", "type": "FUNCTION", "inputParameters": {"city": "Oslo"}}],
    "additional_metadata": None,
}
PLAIN_GOLDEN = {**GOLDEN, "input": "Hello!", "actual_output": None, "tools_called": None, "expected_tools": None}


def inspect_sample(epoch: int, city: str) -> dict[str, Any]:
    call = {"id": f"i{epoch}", "function": "get_weather", "arguments": {"city": city}, "type": "function"}
    messages: list[dict[str, Any]] = [
        {"id": "m0", "role": "system", "content": "Be brief."},
        {"id": "m1", "role": "user", "source": "input", "content": "Is it raining in Oslo?"},
        {"id": f"m2-{epoch}", "role": "assistant", "content": [{"type": "reasoning", "reasoning": "I look."}]},
        {"id": "m3", "role": "tool", "tool_call_id": f"i{epoch}", "content": "attachment://a1"},
        {"id": "m4", "role": "user", "content": "Please proceed."},
        {"id": "m5", "role": "assistant", "content": "Yes."},
    ]
    messages[2]["tool_calls"] = [call]
    usage = {"input_tokens": 10, "output_tokens": 5, "input_tokens_cache_read": 20}
    output = {"choices": [{"message": messages[2]}], "usage": usage, "time": 0.25}
    tool = {"name": "get_weather", "description": "The weather.", "parameters": WEATHER_SCHEMA}
    return {
        "id": "oslo",
        "epoch": epoch,
        "target": "rain",
        "messages": messages,
        "scores": {"includes": {"value": "C", "answer": "Yes."}},
        "events": [{"event": "sample_init"}, {"event": "model", "tools": [tool], "output": output}],
        "attachments": {"a1": "rain"},
        "started_at": "2026-11-22T10:00:00+00:00",
    }


INSPECT = {
    "version": 2,
    "status": "success",
    "eval": {"task": "weather", "model": "openai/gpt-4o"},
    "samples": [inspect_sample(1, "Oslo"), inspect_sample(2, "Bergen")],
}


TAU = {
    "task_id": 7,
    "trial": 1,
    "reward": 0.0,
    "info": {"task": {"user_id": "u", "instruction": "Ask.", "actions": [{"name": "get_weather", "kwargs": {}}]}},
    "traj": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello!"},
        {"role": "assistant", "content": "Which city?"},
        *OPENAI["messages"][1:],
        {"role": "user", "content": "###STOP###"},
    ],
}
TAU2 = {
    "info": {"agent_info": {"llm": "gpt-4.1"}, "environment_info": {"domain_name": "weather", "policy": "Be brief."}},
    "tasks": [{"id": "7", "evaluation_criteria": {"actions": [{"name": "get_weather", "arguments": {}}]}}],
    "simulations": [
        {
            "task_id": "7",
            "trial": 0,
            "start_time": "2026-11-22T10:00:00",
            "reward_info": {"reward": 1.0},
            "messages": [
                {"role": "assistant", "content": "Hi! How can I help you?"},
                {"role": "user", "content": "Is it raining in Oslo?"},
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "c1", "name": "get_weather", "arguments": {"city": "Oslo"}}],
                    "usage": {"prompt_tokens": 30, "completion_tokens": 5},
                    "generation_time_seconds": 0.5,
                },
                {"role": "tool", "id": "c1", "content": "no such city", "requestor": "assistant", "error": True},
                {"role": "assistant", "content": "Please look out of the window."},
                {"role": "user", "tool_calls": [{"id": "u1", "name": "look", "requestor": "user", "arguments": {}}]},
                {"role": "tool", "id": "u1", "content": "rain", "requestor": "user", "error": False},
                {"role": "user", "content": "Yes, it is."},
            ],
        }
    ],
}

LANGSMITH = {
    "id": "e1",
    "dataset_id": "d1",
    "inputs": {"messages": [{"type": "human", "data": {"content": "Is it raining in Oslo?"}}]},
    "outputs": {
        "messages": [
            {
                "type": "ai",
                "content": "",
                "tool_calls": [{"name": "get_weather", "args": {"city": "Oslo"}, "id": "c1"}],
            },
            {"type": "tool", "content": "rain", "tool_call_id": "c1", "status": "success"},
            {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain", "schema", "messages", "AIMessage"],
                "kwargs": {"content": "Yes, it is raining."},
            },
        ]
    },
    "metadata": {"dataset_split": ["base"], "author": "me"},
}


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()


def as_lines(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


DIMENSIONS: dict[str, Any] = {
    "five_dimensions": {
        "tests": [
            {
                "id": "T001",
                "description": "Oslo",
                "user_message": "Weather in Oslo?",
                "expected_tool_calls": [{"tool_name": "get_weather", "required_params": {"city": "Oslo"}}],
                "expected_response_contains": ["Oslo"],
            }
        ],
        "tools": [{"name": "get_weather", "input_schema": WEATHER_SCHEMA}],
        "system": "Be brief.",
    }
}
_CALLS = {"type": "tool-call", "toolCallId": "1", "toolName": "list_posts", "input": {"tag": "vue"}}
_ACCURACY = {"name": "Tool Call Accuracy", "score": 0.5, "metadata": {"mode": "exact"}}
EVALITE: dict[str, Any] = {
    "run": {"id": 1, "runType": "full", "createdAt": "2026-11-30T14:33:31.460Z"},
    "suites": [
        {
            "name": "Blog [A]",
            "variantName": "A",
            "variantGroup": "Blog",
            "evals": [
                {
                    "input": "Posts about Vue?",
                    "output": {"text": "", "toolCalls": [_CALLS]},
                    "expected": {"toolCalls": [{"toolName": "list_posts", "input": {"tag": "react"}}]},
                    "createdAt": "2026-11-30T14:33:31.467Z",
                    "scores": [_ACCURACY],
                },
                {
                    "input": {"messages": [{"role": "user", "content": "Capital of Italy?"}]},
                    "output": "Milan, then Rome",
                    "expected": "Rome",
                    "createdAt": "2026-11-30 14:33:31",
                    "scores": [{"name": "Exact Match", "score": 0}, {"name": "Contains", "score": 1}],
                },
            ],
        }
    ],
}


SAMPLES: dict[str, tuple[str, bytes]] = {
    "openai": ("sample.json", as_json(OPENAI)),
    "anthropic": ("sample.json", as_json(ANTHROPIC)),
    "table": ("sample.csv", TABLE),
    "promptfoo": ("promptfooconfig.yaml", PROMPTFOO.encode()),
    "otel": ("trace.json", as_json(OTEL)),
    "bfcl": ("simple.jsonl", as_lines(BFCL)),
    "claude-code": ("session.jsonl", as_lines(*SESSION)),
    "atif": ("trajectory.json", as_json(ATIF)),
    "adk": ("weather.evalset.json", as_json(ADK)),
    "deepeval": ("goldens.json", as_json([GOLDEN, PLAIN_GOLDEN])),
    "inspect": ("log.json", as_json(INSPECT)),
    "tau": ("airline.json", as_json([TAU])),
    "langsmith": ("dataset.jsonl", as_lines(LANGSMITH)),
    "agentevals": ("examples.jsonl", as_lines(AGENTEVALS)),
    "dimensions": ("tests.json", as_json(DIMENSIONS)),
    "evalite": ("results.json", as_json(EVALITE)),
    "arcade": ("evals.json", as_json(ARCADE)),
    "toolvaluator": ("dataset.json", as_json(TOOLVALUATOR)),
}

DIALECTS: dict[str, tuple[str, str, bytes]] = {
    "promptfoo-results": ("promptfoo", "results.json", as_json(PROMPTFOO_RESULTS)),
    "responses": ("openai", "sample.json", as_json(RESPONSES)),
    "openllmetry": ("otel", "trace.json", as_json(OPENLLMETRY)),
    "vercel": ("otel", "trace.json", as_json(VERCEL)),
    "logfire": ("otel", "trace.json", as_json(LOGFIRE)),
    "pydantic-ai": ("otel", "trace.json", as_json(PYDANTIC_AI)),
}
"""Further samples of some forms, by a name: the form, the file name and the content."""
