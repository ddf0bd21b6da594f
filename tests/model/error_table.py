"""Error texts as providers send them, and what each means (T-15).

Each row: provider, status (`None`: inside a stream or an exception), text, kind, observed, limit.
"""

from __future__ import annotations

import json
from typing import NamedTuple


class Row(NamedTuple):
    provider: str
    status: int | None
    text: str
    kind: str
    observed: int | None = None
    limit: int | None = None


def anthropic(kind: str, message: str) -> str:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})


def openai(message: str, code: str | None = None, kind: str = "invalid_request_error", param: str | None = None) -> str:
    return json.dumps({"error": {"message": message, "type": kind, "param": param, "code": code}})


OVERFLOW = [
    Row(
        "anthropic",
        400,
        anthropic("invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum"),
        "overflow",
        213462,
        200000,
    ),
    Row(
        "anthropic",
        400,
        anthropic(
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 199800 + 8192 > 200000, decrease input length or `max_tokens` and try again",
        ),
        "overflow",
        199800,
        200000,
    ),
    Row(
        "openai",
        400,
        openai(
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            "context_length_exceeded",
            param="input",
        ),
        "overflow",
    ),
    Row(
        "openai",
        None,
        json.dumps(
            {"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."}
        ),
        "overflow",
    ),
    Row(
        "openai",
        400,
        openai(
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 140021 tokens. Please reduce the length of the messages.",
            "context_length_exceeded",
            param="messages",
        ),
        "overflow",
        140021,
        128000,
    ),
    Row(
        "azure",
        400,
        openai(
            "This model's maximum context length is 16385 tokens, however you requested 17001 tokens (16901 in your prompt; 100 for the completion). Please reduce your prompt; or completion length.",
            "context_length_exceeded",
        ),
        "overflow",
        17001,
        16385,
    ),
    Row(
        "vllm",
        400,
        json.dumps(
            {
                "object": "error",
                "message": "This model's maximum context length is 32768 tokens. However, you requested 40100 tokens (39100 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            }
        ),
        "overflow",
        39100,
        32768,
    ),
    Row(
        "vllm",
        400,
        json.dumps(
            {
                "error": {
                    "message": "The decoder prompt (length 41000) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens.",
                    "type": "BadRequestError",
                    "code": 400,
                }
            }
        ),
        "overflow",
        None,
        32768,
    ),
    Row(
        "vllm",
        400,
        json.dumps(
            {
                "error": {
                    "message": "You passed 33001 input tokens and requested 512 output tokens. However, the model's context length is only 32768 tokens, resulting in a maximum input length of 32256 tokens. Please reduce the length of the input prompt.",
                    "code": 400,
                }
            }
        ),
        "overflow",
        33001,
        32768,
    ),
    Row("vllm", 400, "prompt contains at least 32769 input tokens, for a total of 33281 tokens", "overflow", 32769),
    Row(
        "sglang",
        400,
        json.dumps(
            {
                "object": "error",
                "message": "The input (41000 tokens) is longer than the model's context length (32768 tokens).",
                "type": "BadRequestError",
                "code": 400,
            }
        ),
        "overflow",
        41000,
        32768,
    ),
    Row(
        "openrouter",
        400,
        json.dumps(
            {
                "error": {
                    "message": 'This endpoint\'s maximum context length is 131072 tokens. However, you requested about 150000 tokens (149000 of text input, 1000 in the output). Please reduce the length of either one, or use the "middle-out" transform to compress your prompt automatically.',
                    "code": 400,
                }
            }
        ),
        "overflow",
        149000,
        131072,
    ),
    Row(
        "openrouter",
        400,
        json.dumps(
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 400,
                    "metadata": {
                        "raw": anthropic("invalid_request_error", "prompt is too long: 203456 tokens > 200000 maximum"),
                        "provider_name": "Anthropic",
                    },
                }
            }
        ),
        "overflow",
        203456,
        200000,
    ),
    Row(
        "openrouter/poolside",
        400,
        json.dumps(
            {
                "error": {
                    "message": "Input length 140000 exceeds the maximum allowed input length of 131,072 tokens.",
                    "code": 400,
                }
            }
        ),
        "overflow",
        None,
        131072,
    ),
    Row(
        "litellm",
        400,
        json.dumps(
            {
                "error": {
                    "message": 'litellm.ContextWindowExceededError: litellm.BadRequestError: AnthropicException - {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}. Received Model Group=claude',
                    "type": None,
                    "param": None,
                    "code": "400",
                }
            }
        ),
        "overflow",
        210000,
        200000,
    ),
    Row(
        "litellm",
        400,
        "litellm.BadRequestError: OpenAIException - Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of 140000 tokens: 131808 tokens from the input messages and 8192 tokens for the completion.",
        "overflow",
        140000,
        131072,
    ),
    Row("bedrock", 400, json.dumps({"message": "Input is too long for requested model."}), "overflow"),
    Row(
        "bedrock",
        400,
        json.dumps({"message": "The model returned the following errors: Input is too long for requested model."}),
        "overflow",
    ),
    Row(
        "gemini",
        400,
        json.dumps(
            [
                {
                    "error": {
                        "code": 400,
                        "message": "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
                        "status": "INVALID_ARGUMENT",
                    }
                }
            ]
        ),
        "overflow",
        1196265,
        1048575,
    ),
    Row(
        "vertex",
        400,
        json.dumps(
            {
                "error": {
                    "code": 400,
                    "message": "Unable to submit request because the input token count is 1200000 but the model only supports up to 1048576. Reduce the input token count and try again.",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ),
        "overflow",
        1200000,
        1048576,
    ),
    Row(
        "xai",
        400,
        json.dumps(
            {
                "code": "Client specified an invalid argument",
                "error": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            }
        ),
        "overflow",
        537812,
        131072,
    ),
    Row(
        "groq",
        400,
        openai(
            "Please reduce the length of the messages or completion. Current length is 140000 while limit is 131072",
            "context_length_exceeded",
        ),
        "overflow",
    ),
    Row(
        "groq",
        413,
        openai("Please reduce the length of the messages or completion.", "context_length_exceeded"),
        "overflow",
    ),
    Row(
        "copilot",
        400,
        openai("prompt token count of 135000 exceeds the limit of 128000", "model_max_prompt_tokens_exceeded"),
        "overflow",
        135000,
        128000,
    ),
    Row(
        "llama.cpp",
        400,
        json.dumps(
            {
                "error": {
                    "code": 400,
                    "message": "the request exceeds the available context size, try increasing it",
                    "type": "exceed_context_size_error",
                    "n_prompt_tokens": 9001,
                    "n_ctx": 4096,
                }
            }
        ),
        "overflow",
        9001,
        4096,
    ),
    Row(
        "llama.cpp",
        500,
        json.dumps(
            {
                "error": {
                    "code": 500,
                    "message": "the request exceeds the available context size. try increasing the context size or enable context shift",
                    "type": "invalid_request_error",
                }
            }
        ),
        "overflow",
    ),
    Row(
        "lmstudio",
        400,
        json.dumps(
            {
                "error": "Trying to keep the first 9342 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input"
            }
        ),
        "overflow",
        None,
        4096,
    ),
    Row(
        "lmstudio",
        400,
        json.dumps(
            {
                "error": "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input"
            }
        ),
        "overflow",
    ),
    Row(
        "ollama", 400, json.dumps({"error": "prompt too long; exceeded max context length by 4093 tokens"}), "overflow"
    ),
    Row(
        "ollama",
        500,
        json.dumps(
            {
                "error": {
                    "message": "input length exceeds the context length",
                    "type": "api_error",
                    "param": None,
                    "code": None,
                }
            }
        ),
        "overflow",
    ),
    Row(
        "minimax",
        400,
        json.dumps(
            {
                "type": "error",
                "error": {
                    "type": "bad_request_error",
                    "message": "invalid params, context window exceeds limit (2013)",
                    "http_code": "400",
                },
            }
        ),
        "overflow",
    ),
    Row(
        "kimi",
        400,
        openai("Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)"),
        "overflow",
        291351,
        262144,
    ),
    Row(
        "mistral",
        400,
        json.dumps(
            {
                "object": "error",
                "message": "Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length",
                "type": "invalid_request_prompt",
                "code": "3051",
            }
        ),
        "overflow",
        140000,
        131072,
    ),
    Row(
        "together",
        422,
        json.dumps(
            {
                "error": {
                    "message": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4090 `inputs` tokens and 100 `max_new_tokens`",
                    "type": "invalid_request_error",
                }
            }
        ),
        "overflow",
        4090,
        4097,
    ),
    Row(
        "together",
        400,
        json.dumps(
            {
                "error": {
                    "message": "The input (140000 tokens) is longer than the model's context length (131072 tokens).",
                    "type": "invalid_request_error",
                }
            }
        ),
        "overflow",
        140000,
        131072,
    ),
    Row(
        "deepseek",
        400,
        openai(
            "This model's maximum context length is 131072 tokens. However, you requested 150000 tokens (149500 in the messages, 500 in the completion). Please reduce the length of the messages or completion."
        ),
        "overflow",
        149500,
        131072,
    ),
    Row("zai", 400, json.dumps({"error": {"code": "1261", "message": "Prompt exceeds max length"}}), "overflow"),
    Row("zai", None, "model_context_window_exceeded", "overflow"),
    Row(
        "qwen",
        400,
        openai("Range of input length should be [1, 129024]: input tokens exceed the maximum input length"),
        "overflow",
        None,
        129024,
    ),
    Row(
        "qwen",
        400,
        openai("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 258048]"),
        "overflow",
        None,
        258048,
    ),
    Row("zhipu", 400, json.dumps({"error": {"code": "1210", "message": "输入内容过长，超过模型最大长度"}}), "overflow"),
    Row(
        "cerebras",
        400,
        json.dumps(
            {
                "message": "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
                "type": "invalid_request_error",
                "code": "context_length_exceeded",
            }
        ),
        "overflow",
    ),
    Row(
        "cohere",
        400,
        json.dumps(
            {
                "message": "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs, or setting prompt_truncation='AUTO'."
            }
        ),
        "overflow",
    ),
    Row(
        "fireworks",
        400,
        openai("The prompt is too long: 140000, model maximum context length: 131071"),
        "overflow",
        None,
        131071,
    ),
    Row(
        "huggingface",
        422,
        json.dumps(
            {
                "error": "Input validation error: `inputs` must have less than 32768 tokens. Given: 40000",
                "error_type": "validation",
            }
        ),
        "overflow",
        40000,
        32768,
    ),
    Row(
        "databricks",
        400,
        json.dumps(
            {
                "error_code": "BAD_REQUEST",
                "message": "Input is too long: the number of input tokens (140000) exceeds the model limit of 128000 tokens",
            }
        ),
        "overflow",
    ),
    Row("unseen", 400, "The conversation has more tokens than the context window can hold", "overflow"),
    Row("unseen", None, "Context size has been exceeded.", "overflow"),
]

LOOK_ALIKES = [
    Row("bedrock", 429, json.dumps({"message": "Too many tokens, please wait before trying again."}), "rate_limit"),
    Row("bedrock", None, "Throttling error: Too many tokens, please wait before trying again.", "rate_limit"),
    Row(
        "bedrock",
        400,
        json.dumps(
            {"__type": "ThrottlingException", "message": "Too many tokens per day, please wait before trying again."}
        ),
        "rate_limit",
    ),
    Row(
        "anthropic",
        429,
        anthropic(
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 40,000 input tokens per minute. For details, refer to: https://docs.example. Please reduce the prompt length or the maximum tokens requested, or try again later.",
        ),
        "rate_limit",
    ),
    Row(
        "anthropic",
        429,
        anthropic("rate_limit_error", "Number of request tokens has exceeded your per-minute rate limit"),
        "rate_limit",
    ),
    Row("anthropic", 529, anthropic("overloaded_error", "Overloaded"), "overloaded"),
    Row("anthropic", None, anthropic("overloaded_error", "Overloaded"), "overloaded"),
    Row(
        "anthropic",
        400,
        anthropic(
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
        ),
        "quota",
    ),
    Row("anthropic", 413, anthropic("request_too_large", "Request exceeds the maximum size"), "too_many_bytes"),
    Row(
        "anthropic",
        400,
        anthropic(
            "invalid_request_error",
            "messages.3.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
        ),
        "invalid",
    ),
    Row(
        "anthropic",
        400,
        anthropic(
            "invalid_request_error",
            "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5",
        ),
        "output_budget",
        None,
        64000,
    ),
    Row(
        "anthropic",
        400,
        anthropic(
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 150000 + 64000 > 200000, decrease input length or `max_tokens` and try again",
        ),
        "output_budget",
        150000,
        50000,
    ),
    Row(
        "anthropic",
        400,
        anthropic("invalid_request_error", "messages.5.content.0: Invalid `signature` in `thinking` block"),
        "bad_thinking",
    ),
    Row(
        "anthropic",
        400,
        anthropic(
            "invalid_request_error",
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.",
        ),
        "bad_thinking",
    ),
    Row(
        "anthropic",
        400,
        anthropic(
            "invalid_request_error",
            "messages.7.content.2: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
        ),
        "bad_thinking",
    ),
    Row("anthropic", 401, anthropic("authentication_error", "invalid x-api-key"), "auth"),
    Row(
        "anthropic",
        403,
        anthropic("permission_error", "Your API key does not have permission to use the specified resource."),
        "auth",
    ),
    Row("anthropic", 404, anthropic("not_found_error", "model: claude-banana"), "not_found"),
    Row("anthropic", 500, anthropic("api_error", "Internal server error"), "server"),
    Row(
        "anthropic",
        400,
        anthropic("invalid_request_error", "tools.0.custom.description: String should have at most 1024 characters"),
        "invalid",
    ),
    Row(
        "openai",
        429,
        openai(
            "Rate limit reached for gpt-5 in organization org-x on tokens per min (TPM): Limit 30000, Used 29500, Requested 1200. Please try again in 1.4s.",
            "rate_limit_exceeded",
            "tokens",
        ),
        "rate_limit",
    ),
    Row(
        "openai",
        429,
        openai(
            "Request too large for gpt-5 in organization org-x on tokens per min (TPM): Limit 30000, Requested 41022. The input or output tokens must be reduced in order to run successfully.",
            "rate_limit_exceeded",
            "tokens",
        ),
        "request_too_large_for_rate",
        41022,
        30000,
    ),
    Row(
        "openai",
        429,
        openai(
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
            "insufficient_quota",
        ),
        "quota",
    ),
    Row(
        "openai",
        400,
        openai(
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
            "invalid_value",
            param="max_tokens",
        ),
        "output_budget",
        None,
        16384,
    ),
    Row(
        "openai",
        400,
        openai(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "unsupported_parameter",
            param="max_tokens",
        ),
        "invalid",
    ),
    Row(
        "openai",
        400,
        openai(
            "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 64 instead.",
            "string_above_max_length",
        ),
        "invalid",
    ),
    Row(
        "openai",
        400,
        openai(
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200 instead.",
            "array_above_max_length",
        ),
        "invalid",
    ),
    Row(
        "openai",
        401,
        openai(
            "Incorrect API key provided: sk-abc. You can find your API key at https://platform.openai.com/account/api-keys.",
            "invalid_api_key",
        ),
        "auth",
    ),
    Row(
        "openai",
        404,
        openai("The model `gpt-banana` does not exist or you do not have access to it.", "model_not_found"),
        "not_found",
    ),
    Row(
        "openai",
        400,
        openai(
            "The encrypted content for item rs_123 could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
            "invalid_encrypted_content",
        ),
        "bad_thinking",
    ),
    Row(
        "openai",
        400,
        openai("Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'."),
        "invalid",
    ),
    Row(
        "openai",
        None,
        json.dumps(
            {"code": "server_error", "message": "The server had an error processing your request. Sorry about that!"}
        ),
        "server",
    ),
    Row(
        "openai",
        503,
        openai("Our servers are currently overloaded. Please try again later.", None, "service_unavailable_error"),
        "overloaded",
    ),
    Row(
        "azure",
        400,
        openai(
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
            "content_filter",
        ),
        "refused",
    ),
    Row(
        "azure",
        429,
        openai(
            "Requests to the ChatCompletions_Create Operation have exceeded token rate limit of your current pricing tier. Please retry after 6 seconds.",
            "429",
        ),
        "rate_limit",
    ),
    Row(
        "groq",
        413,
        openai(
            "Request too large for model `llama-3.3-70b-versatile` in organization `org_x` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 7012, please reduce your message size and try again. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing",
            "rate_limit_exceeded",
            "tokens",
        ),
        "request_too_large_for_rate",
        7012,
        6000,
    ),
    Row(
        "groq",
        429,
        openai(
            "Rate limit reached for model `x` on tokens per day (TPD): Limit 100000, Used 99000, Requested 5000. Please try again in 57m36s.",
            "rate_limit_exceeded",
            "tokens",
        ),
        "rate_limit",
    ),
    Row(
        "gemini",
        429,
        json.dumps(
            {
                "error": {
                    "code": 429,
                    "message": "You exceeded your current quota, please check your plan and billing details. Quota exceeded for metric: generate_content_free_tier_input_token_count, limit: 250000. Please retry in 31.2s.",
                    "status": "RESOURCE_EXHAUSTED",
                    "details": [{"retryDelay": "31s"}],
                }
            }
        ),
        "rate_limit",
    ),
    Row(
        "gemini",
        503,
        json.dumps(
            {
                "error": {
                    "code": 503,
                    "message": "The model is overloaded. Please try again later.",
                    "status": "UNAVAILABLE",
                }
            }
        ),
        "overloaded",
    ),
    Row(
        "gemini",
        400,
        json.dumps(
            {
                "error": {
                    "code": 400,
                    "message": "API key not valid. Please pass a valid API key.",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ),
        "auth",
    ),
    Row(
        "openrouter",
        402,
        json.dumps(
            {
                "error": {
                    "message": "This request requires more credits, or fewer max_tokens. You requested up to 64000 tokens, but can only afford 12345.",
                    "code": 402,
                }
            }
        ),
        "output_budget",
        None,
        12345,
    ),
    Row(
        "openrouter",
        402,
        json.dumps(
            {"error": {"message": "Insufficient credits. Add more using https://openrouter.ai/credits", "code": 402}}
        ),
        "quota",
    ),
    Row(
        "openrouter",
        400,
        json.dumps(
            {
                "error": {
                    "message": "This endpoint's maximum context length is 1000000 tokens. However, you requested about 1000135 tokens (135 of text input, 1000000 in the output). Please reduce the length of either one.",
                    "code": 400,
                }
            }
        ),
        "output_budget",
        135,
        999865,
    ),
    Row(
        "openrouter",
        200,
        json.dumps(
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 429,
                    "metadata": {"raw": '{"error":{"message":"upstream busy"}}'},
                }
            }
        ),
        "rate_limit",
    ),
    Row(
        "openrouter",
        404,
        json.dumps({"error": {"message": "No endpoints found that support tool use.", "code": 404}}),
        "not_found",
    ),
    Row(
        "deepseek",
        400,
        openai("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
        "output_budget",
        None,
        8192,
    ),
    Row("deepseek", 402, openai("Insufficient Balance", "invalid_request_error", "unknown_error"), "quota"),
    Row(
        "deepseek",
        400,
        openai("Missing `reasoning_content` field in the assistant message at message index 3"),
        "invalid",
    ),
    Row(
        "vllm",
        400,
        json.dumps(
            {
                "error": {
                    "message": "'max_tokens' or 'max_completion_tokens' is too large: 20000. This model's maximum context length is 32768 tokens and your request has 15000 input tokens (20000 > 32768 - 15000).",
                    "code": 400,
                }
            }
        ),
        "output_budget",
        15000,
        17768,
    ),
    Row(
        "vllm",
        404,
        json.dumps(
            {"object": "error", "message": "The model `foo` does not exist.", "type": "NotFoundError", "code": 404}
        ),
        "not_found",
    ),
    Row(
        "ollama",
        404,
        json.dumps({"error": {"message": 'model "qwen9" not found, try pulling it first', "type": "api_error"}}),
        "not_found",
    ),
    Row("copilot", 400, openai("total number of tools exceeds the limit of 128"), "invalid"),
    Row(
        "lmstudio",
        404,
        json.dumps({"error": {"message": "No models loaded. Please load a model in the developer page."}}),
        "not_found",
    ),
    Row("minimax", 429, json.dumps({"error": {"message": "rate limit exceeded(RPM) (1002)"}}), "rate_limit"),
    Row(
        "kimi",
        429,
        openai("The engine is currently overloaded, please try again later", None, "engine_overloaded_error"),
        "rate_limit",
    ),
    Row(
        "nginx",
        413,
        "<html><head><title>413 Request Entity Too Large</title></head><body><center><h1>413 Request Entity Too Large</h1></center><hr><center>nginx</center></body></html>",
        "too_many_bytes",
    ),
    Row(
        "nginx",
        502,
        "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>",
        "server",
    ),
    Row("cloudflare", 524, "error code: 524", "server"),
    Row("huggingface", 503, json.dumps({"error": "Model is currently loading", "estimated_time": 20.0}), "overloaded"),
    Row(
        "litellm",
        429,
        json.dumps(
            {
                "error": {
                    "message": 'litellm.RateLimitError: AnthropicException - {"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed the rate limit for your organization of 2,000,000 input tokens per minute. prompt is too long"}}',
                    "code": "429",
                }
            }
        ),
        "rate_limit",
    ),
    Row("gateway", 400, json.dumps({"error": {"message": "daily token limit exceeded for this key"}}), "quota"),
    Row(
        "gateway",
        400,
        json.dumps({"detail": [{"loc": ["body", "messages"], "msg": "Field required", "type": "missing"}]}),
        "invalid",
    ),
    Row("cerebras", 400, "", "ambiguous"),
    Row("cerebras", 413, "413 status code (no body)", "ambiguous"),
    Row("cerebras", None, "400 (no body)", "ambiguous"),
    Row("cerebras", 429, "429 (no body)", "rate_limit"),
    Row("anywhere", 500, "", "server"),
    Row("anywhere", 401, "", "auth"),
]
