"""A provider of your own, and a command: models on a server in the house, and `/translate LANGUAGE`."""

import os

from tenuto.extension import Extension, Model, Prompt

LANGUAGES = ("Danish", "Dutch", "French", "German", "Polish", "Spanish")


def setup(tenuto: Extension) -> None:
    tenuto.provider(
        "house",
        base_url=os.environ.get("HOUSE_MODELS_URL", "http://127.0.0.1:9999/v1"),
        wire="openai-chat",
        api_key_env="HOUSE_MODELS_KEY",
        models=[
            Model(name="small", context_window=32_000, max_output_tokens=4_000, input_price=0.0, output_price=0.0),
            Model(name="large", context_window=200_000, max_output_tokens=16_000, input_price=1.0, output_price=4.0),
        ],
    )

    async def shout(request):
        """Answer without any server: a stream is an async generator of texts."""
        said = [message for message in request.messages if message.role == "user"]
        for word in said[-1].parts[0].text.split():
            yield f"{word.upper()} "

    tenuto.provider("shout", models=[Model(name="loud", context_window=8_000)], stream=shout)

    @tenuto.command(
        "translate",
        argument_hint="LANGUAGE",
        complete=lambda typed: [language for language in LANGUAGES if language.lower().startswith(typed.lower())],
    )
    def translate(argument):
        """Have the last answer said in another language."""
        if argument not in LANGUAGES:
            return f"Into which language? {', '.join(LANGUAGES)}"
        return Prompt(f"Say your last answer again, in {argument}. Leave code as it is.")
