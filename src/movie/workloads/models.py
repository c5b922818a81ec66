"""Language models by name, built from configurations: shapes as published, weights random."""

from collections.abc import Callable
from typing import Any

import transformers

from movie.workloads.options import Options

_Configuration = Callable[..., Any]


def _opt(hidden: int, layers: int, heads: int, **more: Any) -> Any:
    return transformers.OPTConfig(
        hidden_size=hidden,
        num_hidden_layers=layers,
        ffn_dim=4 * hidden,
        num_attention_heads=heads,
        **{"word_embed_proj_dim": hidden, **more},
    )


def _llama(hidden: int, inner: int, layers: int, heads: int, groups: int, vocabulary: int, **more: Any) -> Any:
    return transformers.LlamaConfig(
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=groups,
        vocab_size=vocabulary,
        **more,
    )


def _codegen(width: int, layers: int, heads: int, rotary: int, **more: Any) -> Any:
    return transformers.CodeGenConfig(
        n_embd=width, n_layer=layers, n_head=heads, n_positions=2048, n_ctx=2048, rotary_dim=rotary, **more
    )


def _neox(hidden: int, layers: int, heads: int, **more: Any) -> Any:
    return transformers.GPTNeoXConfig(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        **more,
    )


def _qwen2(hidden: int, inner: int, layers: int, heads: int, groups: int, **more: Any) -> Any:
    return transformers.Qwen2Config(
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=groups,
        **more,
    )


# Names as people write them. MobileLLM is a Llama by shape (deep and thin, embeddings shared).
_MODELS: dict[str, tuple[_Configuration, tuple[int, ...], dict[str, Any]]] = {
    "opt-125m": (_opt, (768, 12, 12), {}),
    # The only one with narrower embeddings, and with norms behind the blocks.
    "opt-350m": (_opt, (1024, 24, 16), {"word_embed_proj_dim": 512, "do_layer_norm_before": False}),
    "opt-1.3b": (_opt, (2048, 24, 32), {}),
    "opt-2.7b": (_opt, (2560, 32, 32), {}),
    "opt-6.7b": (_opt, (4096, 32, 32), {}),
    "opt-13b": (_opt, (5120, 40, 40), {}),
    "tinyllama-1.1b": (_llama, (2048, 5632, 22, 32, 4, 32000), {}),
    "mobilellm-125m": (_llama, (576, 1536, 30, 9, 3, 32000), {"tie_word_embeddings": True}),
    "mobilellm-350m": (_llama, (960, 2560, 32, 15, 5, 32000), {"tie_word_embeddings": True}),
    "mobilellm-1b": (_llama, (1280, 3584, 54, 20, 5, 32000), {"tie_word_embeddings": True}),
    "vicuna-13b": (_llama, (5120, 13824, 40, 40, 40, 32000), {}),
    "llama3.2-1b": (_llama, (2048, 8192, 16, 32, 8, 128256), {"tie_word_embeddings": True}),
    "llama3-8b": (_llama, (4096, 14336, 32, 32, 8, 128256), {}),
    "codegen-350m": (_codegen, (1024, 20, 16, 32), {}),
    "codegen-2b": (_codegen, (2560, 32, 32, 64), {}),
    "codegen-6b": (_codegen, (4096, 33, 16, 64), {}),
    "codegen2-1b": (_codegen, (2048, 16, 16, 32), {}),
    "codegen2-3.7b": (_codegen, (4096, 16, 16, 64), {}),
    "gpt-neox-20b": (_neox, (6144, 44, 64), {}),
    "qwen2-0.5b": (_qwen2, (896, 4864, 24, 14, 2), {"vocab_size": 151936, "tie_word_embeddings": True}),
    "qwen2-1.5b": (_qwen2, (1536, 8960, 28, 12, 2), {"tie_word_embeddings": True}),
    "qwen2-7b": (_qwen2, (3584, 18944, 28, 28, 4), {"vocab_size": 152064}),
}
# Where LoRA adapters go: the projections that make queries and values.
_ADAPTED = {"codegen": ["qkv_proj"], "gpt-neox": ["query_key_value"]}


def model_names() -> list[str]:
    """The models there are."""
    return sorted(_MODELS)


def build(name: str, **more: Any) -> Any:
    """A model on torch's current default device, in its default dtype. `more`: of its configuration.

    Raises SystemExit, with the names there are, for an unknown one.
    """
    return transformers.AutoModelForCausalLM.from_config(configuration(name, **more))


def build_body(name: str, **more: Any) -> Any:
    """The same without the layer that makes logits: what a critic or a reward model has below its own head."""
    return transformers.AutoModel.from_config(configuration(name, **more))


def configuration(name: str, **more: Any) -> Any:
    """The configuration of a model by name."""
    if name not in _MODELS:
        raise SystemExit(f"no model is called {name!r}: there are {', '.join(model_names())}")
    make, shape, fixed = _MODELS[name]
    return make(*shape, **{**fixed, **more})


def prepared(model: Any, options: Options) -> Any:
    """The model with adapters and recomputation as the strategy says, in training mode."""
    if options.adapters:
        import peft  # noqa: PLC0415  -- only these need it

        family = next((family for family in _ADAPTED if options.model.startswith(family)), None)
        model = peft.get_peft_model(
            model,
            peft.LoraConfig(r=16, target_modules=_ADAPTED[family] if family else ["q_proj", "v_proj"]),
            autocast_adapter_dtype=False,
        )
        if options.recompute:
            model.enable_input_require_grads()
    if options.recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model.train()
