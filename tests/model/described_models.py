"""The full tensor tables of published models, from their dimensions (evidence 1.1 and 1.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from .described import Described

if TYPE_CHECKING:
    from collections.abc import Callable

_Precision = Literal["matrix", "expert", "small"]


@dataclass
class _Table:
    """A tensor table under construction. Small tensors are float32 in every file."""

    rows: list[tuple[str, tuple[int, ...], _Precision]] = field(default_factory=list)
    block: str = ""

    def matrix(self, name: str, *shape: int) -> None:
        self.rows.append((f"{self.block}{name}.weight", shape, "matrix"))

    def expert(self, name: str, *shape: int) -> None:
        self.rows.append((f"{self.block}{name}.weight", shape, "expert"))

    def small(self, name: str, *shape: int) -> None:
        self.rows.append((f"{self.block}{name}", shape, "small"))

    def norm(self, name: str, width: int) -> None:
        self.small(f"{name}.weight", width)

    def attention(
        self,
        hidden: int,
        query: int,
        key: int,
        value: int | None = None,
        *,
        head: int = 0,
        bias: bool = False,
    ) -> None:
        """q, k, v and output projections; ``head`` adds QK norms, a ``value`` of 0 leaves v out."""
        value = key if value is None else value
        self.matrix("attn_q", hidden, query)
        self.matrix("attn_k", hidden, key)
        if value:
            self.matrix("attn_v", hidden, value)
        self.matrix("attn_output", query, hidden)
        if bias:
            for name, width in (("attn_q", query), ("attn_k", key), ("attn_v", value)):
                self.small(f"{name}.bias", width)
        if head:
            self.norm("attn_q_norm", head)
            self.norm("attn_k_norm", head)

    def ffn(self, hidden: int, width: int, suffix: str = "", *, gated: bool = True) -> None:
        if gated:
            self.matrix(f"ffn_gate{suffix}", hidden, width)
        self.matrix(f"ffn_up{suffix}", hidden, width)
        self.matrix(f"ffn_down{suffix}", width, hidden)

    def experts(self, hidden: int, width: int, count: int, *, gated: bool = True) -> None:
        self.small("ffn_gate_inp.weight", hidden, count)
        if gated:
            self.expert("ffn_gate_exps", hidden, width, count)
        self.expert("ffn_up_exps", hidden, width, count)
        self.expert("ffn_down_exps", width, hidden, count)

    def nextn(self, hidden: int, vocabulary: int) -> None:
        """What an MTP block has on top of a layer; ``vocabulary`` 0 shares the model's own tables."""
        self.matrix("nextn.eh_proj", 2 * hidden, hidden)
        for name in ("enorm", "hnorm", "shared_head_norm"):
            self.norm(f"nextn.{name}", hidden)
        if vocabulary:
            self.matrix("nextn.embed_tokens", hidden, vocabulary)
            self.matrix("nextn.shared_head_head", hidden, vocabulary)


def _model(
    architecture: str,
    *,
    layers: int,
    hidden: int,
    vocabulary: int,
    block: Callable[[_Table, int], None],
    tied: bool = False,
    context: int = 131072,
    extra: Callable[[_Table], None] = lambda _: None,
    **hyperparameters: object,
) -> _Recipe:
    table = _Table()
    table.matrix("token_embd", hidden, vocabulary)
    extra(table)
    for layer in range(layers):
        table.block = f"blk.{layer}."
        block(table, layer)
    table.block = ""
    table.norm("output_norm", hidden)
    if not tied:
        table.matrix("output", hidden, vocabulary)
    return _Recipe(
        {
            "general.architecture": architecture,
            f"{architecture}.block_count": layers,
            f"{architecture}.embedding_length": hidden,
            f"{architecture}.context_length": context,
            **{f"{architecture}.{key.replace('__', '.')}": value for key, value in hyperparameters.items()},
        },
        table.rows,
    )


@dataclass(frozen=True)
class _Recipe:
    hyperparameters: dict[str, object]
    rows: list[tuple[str, tuple[int, ...], _Precision]]


def _dense(
    architecture: str,
    *,
    hidden: int,
    heads: int,
    kv_heads: int,
    head: int,
    width: int,
    bias: bool = False,
    **rest: object,
) -> _Recipe:
    def block(table: _Table, _layer: int) -> None:
        table.norm("attn_norm", hidden)
        table.attention(hidden, heads * head, kv_heads * head, bias=bias)
        table.norm("ffn_norm", hidden)
        table.ffn(hidden, width)

    return _model(
        architecture,
        hidden=hidden,
        block=block,
        feed_forward_length=width,
        attention__head_count=heads,
        attention__head_count_kv=kv_heads,
        attention__key_length=head,
        attention__value_length=head,
        **rest,
    )


def _moe(
    architecture: str,
    *,
    hidden: int,
    heads: int,
    kv_heads: int,
    experts: int,
    used: int,
    width: int,
    qk_norm: bool,
    **rest: object,
) -> _Recipe:
    head = 128

    def block(table: _Table, _layer: int) -> None:
        table.norm("attn_norm", hidden)
        table.attention(hidden, heads * head, kv_heads * head, head=head if qk_norm else 0)
        table.norm("ffn_norm", hidden)
        table.experts(hidden, width, experts)

    return _model(
        architecture,
        hidden=hidden,
        block=block,
        feed_forward_length=width,
        expert_count=experts,
        expert_used_count=used,
        attention__head_count=heads,
        attention__head_count_kv=kv_heads,
        attention__key_length=head,
        attention__value_length=head,
        **rest,
    )


def _gemma3(*, hidden: int, heads: int, kv_heads: int, head: int, width: int, **rest: object) -> _Recipe:
    def block(table: _Table, _layer: int) -> None:
        table.norm("attn_norm", hidden)
        table.attention(hidden, heads * head, kv_heads * head, head=head)
        for name in ("post_attention_norm", "ffn_norm", "post_ffw_norm"):
            table.norm(name, hidden)
        table.ffn(hidden, width)

    return _model(
        "gemma3",
        hidden=hidden,
        vocabulary=262144,
        tied=True,
        block=block,
        feed_forward_length=width,
        attention__head_count=heads,
        attention__head_count_kv=kv_heads,
        attention__key_length=head,
        attention__value_length=head,
        attention__sliding_window=1024,
        **rest,
    )


def _gpt_oss(*, layers: int, experts: int) -> _Recipe:
    hidden, query, key = 2880, 64 * 64, 8 * 64

    def block(table: _Table, _layer: int) -> None:
        table.norm("attn_norm", hidden)
        table.attention(hidden, query, key, bias=True)
        table.small("attn_output.bias", hidden)
        table.small("attn_sinks.weight", 64)
        table.norm("post_attention_norm", hidden)
        table.experts(hidden, hidden, experts)
        table.small("ffn_gate_inp.bias", experts)
        for name in ("gate", "up", "down"):
            table.small(f"ffn_{name}_exps.bias", hidden, experts)

    return _model(
        "gpt-oss",
        layers=layers,
        hidden=hidden,
        vocabulary=201088,
        block=block,
        expert_count=experts,
        expert_used_count=4,
        expert_feed_forward_length=hidden,
        attention__head_count=64,
        attention__head_count_kv=8,
        attention__key_length=64,
        attention__value_length=64,
        attention__sliding_window=128,
    )


def _deepseek(
    *,
    layers: int,
    hidden: int,
    heads: int,
    query_rank: int,
    dense_width: int,
    experts: int,
    used: int,
    width: int,
    shared: int,
    vocabulary: int,
    dense_layers: int,
    mtp: int = 0,
    absorbed: bool = True,
    context: int = 163840,
    router_bias: bool = True,
) -> _Recipe:
    """MLA; ``absorbed`` files hold k_b and v_b, older ones the joined kv_b."""
    rank, rope, nope, value = 512, 64, 128, 128

    def block(table: _Table, layer: int) -> None:
        table.norm("attn_norm", hidden)
        if query_rank:
            table.matrix("attn_q_a", hidden, query_rank)
            table.norm("attn_q_a_norm", query_rank)
            table.matrix("attn_q_b", query_rank, heads * (nope + rope))
        else:
            table.matrix("attn_q", hidden, heads * (nope + rope))
        table.matrix("attn_kv_a_mqa", hidden, rank + rope)
        table.norm("attn_kv_a_norm", rank)
        if absorbed:
            table.matrix("attn_k_b", nope, rank, heads)
            table.matrix("attn_v_b", rank, value, heads)
        else:
            table.matrix("attn_kv_b", rank, heads * (nope + value))
        table.matrix("attn_output", heads * value, hidden)
        table.norm("ffn_norm", hidden)
        if layer < dense_layers:
            table.ffn(hidden, dense_width)
        else:
            table.experts(hidden, width, experts)
            if router_bias:
                table.small("exp_probs_b.bias", experts)
            table.ffn(hidden, width * shared, "_shexp")
        if layer >= layers:
            table.nextn(hidden, vocabulary)

    lengths: dict[str, object] = {
        "attention__head_count_kv": heads,
        "attention__key_length": nope + rope,
        "attention__value_length": value,
    }
    if absorbed:
        lengths = {
            "attention__head_count_kv": 1,
            "attention__key_length": rank + rope,
            "attention__value_length": rank,
            "attention__key_length_mla": nope + rope,
            "attention__value_length_mla": value,
        }
    return _model(
        "deepseek2",
        layers=layers + mtp,
        hidden=hidden,
        vocabulary=vocabulary,
        block=block,
        context=context,
        feed_forward_length=dense_width,
        leading_dense_block_count=dense_layers,
        expert_count=experts,
        expert_used_count=used,
        expert_shared_count=shared,
        expert_feed_forward_length=width,
        attention__head_count=heads,
        attention__kv_lora_rank=rank,
        rope__dimension_count=rope,
        **({"nextn_predict_layers": mtp} if mtp else {}),
        **lengths,
    )


def _glm_air(*, mtp: int) -> _Recipe:
    layers, hidden, vocabulary = 46, 4096, 151552

    def block(table: _Table, layer: int) -> None:
        table.norm("attn_norm", hidden)
        table.attention(hidden, 96 * 128, 8 * 128, bias=True)
        table.norm("post_attention_norm", hidden)
        if layer == 0:
            table.ffn(hidden, 10944)
        else:
            table.experts(hidden, 1408, 128)
            table.small("exp_probs_b.bias", 128)
            table.ffn(hidden, 1408, "_shexp")
        if layer >= layers:
            table.nextn(hidden, vocabulary)

    return _model(
        "glm4moe",
        layers=layers + mtp,
        hidden=hidden,
        vocabulary=vocabulary,
        block=block,
        feed_forward_length=10944,
        leading_dense_block_count=1,
        expert_count=128,
        expert_used_count=8,
        expert_shared_count=1,
        expert_feed_forward_length=1408,
        attention__head_count=96,
        attention__head_count_kv=8,
        attention__key_length=128,
        attention__value_length=128,
        **({"nextn_predict_layers": mtp} if mtp else {}),
    )


def _nemotron_h(
    architecture: str,
    pattern: str,
    *,
    hidden: int,
    heads: int,
    kv_heads: int,
    ssm_heads: int,
    ssm_head: int,
    width: int,
) -> _Recipe:
    """One mixer per block: ``M`` Mamba-2, ``*`` attention, ``-`` FFN, ``E`` experts."""
    groups, state, conv, head = 8, 128, 4, 128
    inner = ssm_heads * ssm_head

    def mamba(table: _Table) -> None:
        channels = inner + 2 * groups * state
        table.matrix("ssm_in", hidden, 2 * inner + 2 * groups * state + ssm_heads)
        table.small("ssm_conv1d.weight", conv, channels)
        table.small("ssm_conv1d.bias", channels)
        table.small("ssm_dt.bias", ssm_heads)
        table.small("ssm_a", 1, ssm_heads)
        table.small("ssm_d", 1, ssm_heads)
        table.small("ssm_norm.weight", inner // groups, groups)
        table.matrix("ssm_out", inner, hidden)

    def block(table: _Table, layer: int) -> None:
        table.norm("attn_norm", hidden)
        mixer = pattern[layer]
        if mixer == "M":
            mamba(table)
        elif mixer == "*":
            table.attention(hidden, heads * head, kv_heads * head)
        elif mixer == "-":
            table.ffn(hidden, width, gated=False)
        else:
            table.experts(hidden, width, 128, gated=False)
            table.small("exp_probs_b.bias", 128)
            table.ffn(hidden, 3712, "_shexp", gated=False)

    experts = {"expert_count": 128, "expert_used_count": 6, "expert_feed_forward_length": width}
    return _model(
        architecture,
        layers=len(pattern),
        hidden=hidden,
        vocabulary=131072,
        block=block,
        feed_forward_length=[width if mixer in "-E" else 0 for mixer in pattern],
        attention__head_count=heads,
        attention__head_count_kv=[kv_heads if mixer == "*" else 0 for mixer in pattern],
        attention__key_length=head,
        attention__value_length=head,
        ssm__conv_kernel=conv,
        ssm__state_size=state,
        ssm__group_count=groups,
        ssm__inner_size=inner,
        ssm__time_step_rank=ssm_heads,
        **(experts if "E" in pattern else {}),
    )


def _qwen36(
    *,
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    value_heads: int,
    width: int,
    experts: int,
    mtp: int,
) -> _Recipe:
    """Gated delta net with full attention in every fourth layer; dense when ``experts`` is 0."""
    architecture = "qwen35moe" if experts else "qwen35"
    head, state, key_heads = 256, 128, 16
    inner = value_heads * state
    channels = 2 * key_heads * state + inner
    vocabulary = 248320

    def linear(table: _Table) -> None:
        table.matrix("attn_qkv", hidden, channels)
        table.matrix("attn_gate", hidden, inner)
        table.small("ssm_conv1d.weight", 4, channels)
        table.small("ssm_dt.bias", value_heads)
        table.small("ssm_a", value_heads)
        table.matrix("ssm_beta", hidden, value_heads)
        table.matrix("ssm_alpha", hidden, value_heads)
        table.small("ssm_norm.weight", state)
        table.matrix("ssm_out", inner, hidden)

    def block(table: _Table, layer: int) -> None:
        table.norm("attn_norm", hidden)
        table.norm("post_attention_norm", hidden)
        if layer < layers and (layer + 1) % 4:
            linear(table)
        else:
            table.matrix("attn_q", hidden, 2 * heads * head)
            table.matrix("attn_k", hidden, kv_heads * head)
            table.matrix("attn_v", hidden, kv_heads * head)
            table.matrix("attn_output", heads * head, hidden)
            table.norm("attn_q_norm", head)
            table.norm("attn_k_norm", head)
        if experts:
            table.experts(hidden, width, experts)
            table.small("ffn_gate_inp_shexp.weight", hidden)
            table.ffn(hidden, width, "_shexp")
        else:
            table.ffn(hidden, width)
        if layer >= layers:
            table.nextn(hidden, 0)

    routed = {"expert_count": experts, "expert_used_count": 8, "expert_feed_forward_length": width}
    return _model(
        architecture,
        layers=layers + mtp,
        hidden=hidden,
        vocabulary=vocabulary,
        context=262144,
        block=block,
        full_attention_interval=4,
        attention__head_count=heads,
        attention__head_count_kv=kv_heads,
        attention__key_length=head,
        attention__value_length=head,
        ssm__conv_kernel=4,
        ssm__state_size=state,
        ssm__group_count=key_heads,
        ssm__inner_size=inner,
        ssm__time_step_rank=value_heads,
        **(routed if experts else {"feed_forward_length": width}),
        **({"nextn_predict_layers": mtp} if mtp else {}),
    )


def _per_layer_tables(hidden: int, layers: int, altup: int = 0) -> Callable[[_Table], None]:
    def extra(table: _Table) -> None:
        table.matrix("per_layer_token_embd", 256 * layers, 262144)
        table.matrix("per_layer_model_proj", hidden, 256 * layers)
        table.norm("per_layer_proj_norm", 256)
        if altup:
            table.matrix("altup_proj", hidden, hidden, altup)
            table.matrix("altup_unembd_proj", hidden, hidden, altup)

    return extra


def _per_layer_input(table: _Table, hidden: int) -> None:
    table.matrix("inp_gate", hidden, 256)
    table.matrix("proj", 256, hidden)
    table.norm("post_norm", hidden)


def _gemma3n(*, layers: int, shared_kv: int) -> _Recipe:
    hidden, width, head = 2048, 16384, 256

    def block(table: _Table, _layer: int) -> None:
        table.norm("attn_norm", hidden)
        table.attention(hidden, 8 * head, 2 * head, head=head)
        for name in ("post_attention_norm", "ffn_norm", "post_ffw_norm"):
            table.norm(name, hidden)
        table.ffn(hidden, width)
        _per_layer_input(table, hidden)
        table.small("altup_correct_coef.weight", 4, 4)
        table.small("altup_correct_scale.weight", hidden)
        table.small("altup_predict_coef.weight", 4, 16)
        table.small("altup_router.weight", hidden, 4)
        table.norm("altup_router_norm", hidden)
        table.matrix("laurel_l", hidden, 64)
        table.matrix("laurel_r", 64, hidden)
        table.norm("laurel_post_norm", hidden)

    return _model(
        "gemma3n",
        layers=layers,
        hidden=hidden,
        vocabulary=262144,
        tied=True,
        block=block,
        context=32768,
        extra=_per_layer_tables(hidden, layers, altup=3),
        feed_forward_length=width,
        attention__head_count=8,
        attention__head_count_kv=2,
        attention__key_length=head,
        attention__value_length=head,
        attention__sliding_window=512,
        attention__sliding_window_pattern=[(layer + 1) % 5 != 0 for layer in range(layers)],
        attention__shared_kv_layers=shared_kv,
    )


def _gemma4(
    *,
    layers: int,
    period: int,
    hidden: int,
    heads: int,
    kv_heads: tuple[int, int],
    width: int,
    window: int = 1024,
    experts: int = 0,
    expert_width: int = 0,
    shared_kv: int = 0,
    per_layer: bool = False,
    key_is_value: bool = True,
) -> _Recipe:
    """Sliding layers have heads of 256, the last of every ``period`` is global with heads of 512.

    ``kv_heads`` are those of sliding and of global layers. The last ``shared_kv`` layers own no cache
    and have FFNs of twice the width.
    """
    sliding = [(layer + 1) % period != 0 for layer in range(layers)]

    def ffn_width(layer: int) -> int:
        return width * 2 if layer >= layers - shared_kv else width

    def block(table: _Table, layer: int) -> None:
        head, kv = (256, kv_heads[0]) if sliding[layer] else (512, kv_heads[1])
        table.norm("attn_norm", hidden)
        joined = key_is_value and not sliding[layer]
        table.attention(hidden, heads * head, kv * head, 0 if joined else None, head=head)
        for name in ("post_attention_norm", "ffn_norm", "post_ffw_norm"):
            table.norm(name, hidden)
        table.small("layer_output_scale.weight", 1)
        table.ffn(hidden, ffn_width(layer))
        if experts:
            for name in ("pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2"):
                table.norm(name, hidden)
            table.small("ffn_gate_inp.weight", hidden, experts)
            table.small("ffn_gate_inp.scale", hidden)
            table.expert("ffn_gate_up_exps", hidden, 2 * expert_width, experts)
            table.expert("ffn_down_exps", expert_width, hidden, experts)
            table.small("ffn_down_exps.scale", experts)
        if per_layer:
            _per_layer_input(table, hidden)

    routed = {"expert_count": experts, "expert_used_count": 8, "expert_feed_forward_length": expert_width}
    return _model(
        "gemma4",
        layers=layers,
        hidden=hidden,
        vocabulary=262144,
        tied=True,
        block=block,
        context=262144,
        extra=_per_layer_tables(hidden, layers) if per_layer else lambda _: None,
        feed_forward_length=[ffn_width(layer) for layer in range(layers)],
        attention__head_count=heads,
        attention__head_count_kv=[kv_heads[0 if local else 1] for local in sliding],
        attention__key_length=512,
        attention__value_length=512,
        attention__key_length_swa=256,
        attention__value_length_swa=256,
        attention__sliding_window=window,
        attention__sliding_window_pattern=sliding,
        attention__shared_kv_layers=shared_kv,
        **(routed if experts else {}),
    )


_RECIPES: dict[str, Callable[[], _Recipe]] = {
    "Llama-3.1-8B": lambda: _dense(
        "llama", layers=32, hidden=4096, heads=32, kv_heads=8, head=128, width=14336, vocabulary=128256
    ),
    "Llama-2-70B": lambda: _dense(
        "llama", layers=80, hidden=8192, heads=64, kv_heads=8, head=128, width=28672, vocabulary=32000
    ),
    "Mistral-Small-24B": lambda: _dense(
        "llama", layers=40, hidden=5120, heads=32, kv_heads=8, head=128, width=32768, vocabulary=131072
    ),
    "Qwen2.5-VL-7B": lambda: _dense(
        "qwen2vl",
        layers=28,
        hidden=3584,
        heads=28,
        kv_heads=4,
        head=128,
        width=18944,
        vocabulary=152064,
        bias=True,
    ),
    "Gemma-3-27B": lambda: _gemma3(layers=62, hidden=5376, heads=32, kv_heads=16, head=128, width=21504),
    "Gemma-3-4B": lambda: _gemma3(layers=34, hidden=2560, heads=8, kv_heads=4, head=256, width=10240),
    "Qwen3-30B-A3B": lambda: _moe(
        "qwen3moe",
        layers=48,
        hidden=2048,
        heads=32,
        kv_heads=4,
        experts=128,
        used=8,
        width=768,
        vocabulary=151936,
        qk_norm=True,
    ),
    "Qwen3-235B-A22B": lambda: _moe(
        "qwen3moe",
        layers=94,
        hidden=4096,
        heads=64,
        kv_heads=4,
        experts=128,
        used=8,
        width=1536,
        vocabulary=151936,
        qk_norm=True,
    ),
    "Mixtral-8x7B": lambda: _moe(
        "llama",
        layers=32,
        hidden=4096,
        heads=32,
        kv_heads=8,
        experts=8,
        used=2,
        width=14336,
        vocabulary=32000,
        qk_norm=False,
    ),
    "gpt-oss-20b": lambda: _gpt_oss(layers=24, experts=32),
    "gpt-oss-120b": lambda: _gpt_oss(layers=36, experts=128),
    "DeepSeek-V3": lambda: _deepseek_v3(mtp=0),
    "DeepSeek-V3+MTP": lambda: _deepseek_v3(mtp=1),
    "DeepSeek-V3-expanded": lambda: _deepseek_v3(mtp=0, absorbed=False),
    "DeepSeek-V2-Lite": lambda: _deepseek_v2_lite(absorbed=True),
    "DeepSeek-V2-Lite-expanded": lambda: _deepseek_v2_lite(absorbed=False),
    "GLM-4.5-Air": lambda: _glm_air(mtp=0),
    "GLM-4.5-Air+MTP": lambda: _glm_air(mtp=1),
    "Nemotron-3-Nano-30B": lambda: _nemotron_h(
        "nemotron_h_moe",
        "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
        hidden=2688,
        heads=32,
        kv_heads=2,
        ssm_heads=64,
        ssm_head=64,
        width=1856,
    ),
    "Nemotron-Nano-9B-v2": lambda: _nemotron_h(
        "nemotron_h",
        "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-",
        hidden=4480,
        heads=40,
        kv_heads=8,
        ssm_heads=128,
        ssm_head=80,
        width=15680,
    ),
    "Qwen3.6-35B-A3B": lambda: _qwen36_35b(mtp=0),
    "Qwen3.6-35B-A3B+MTP": lambda: _qwen36_35b(mtp=1),
    "Qwen3.6-27B": lambda: _qwen36_27b(mtp=0),
    "Qwen3.6-27B+MTP": lambda: _qwen36_27b(mtp=1),
    "gemma-3n-E4B": lambda: _gemma3n(layers=35, shared_kv=15),
    "gemma-4-26B-A4B": lambda: _gemma4(
        layers=30, period=6, hidden=2816, heads=16, kv_heads=(8, 2), width=2112, experts=128, expert_width=704
    ),
    "gemma-4-31B": lambda: _gemma4(layers=60, period=6, hidden=5376, heads=32, kv_heads=(16, 4), width=21504),
    "gemma-4-E2B": lambda: _gemma4(
        layers=35,
        period=5,
        hidden=1536,
        heads=8,
        kv_heads=(1, 1),
        width=6144,
        window=512,
        shared_kv=20,
        per_layer=True,
        key_is_value=False,
    ),
}

MODELS = tuple(_RECIPES)


def _deepseek_v3(*, mtp: int, absorbed: bool = True) -> _Recipe:
    return _deepseek(
        layers=61,
        hidden=7168,
        heads=128,
        query_rank=1536,
        dense_width=18432,
        experts=256,
        used=8,
        width=2048,
        shared=1,
        vocabulary=129280,
        dense_layers=3,
        mtp=mtp,
        absorbed=absorbed,
    )


def _deepseek_v2_lite(*, absorbed: bool) -> _Recipe:
    return _deepseek(
        layers=27,
        hidden=2048,
        heads=16,
        query_rank=0,
        dense_width=10944,
        experts=64,
        used=6,
        width=1408,
        shared=2,
        vocabulary=102400,
        dense_layers=1,
        absorbed=absorbed,
        router_bias=False,
    )


def _qwen36_35b(*, mtp: int) -> _Recipe:
    return _qwen36(
        layers=40, hidden=2048, heads=16, kv_heads=2, value_heads=32, width=512, experts=256, mtp=mtp
    )


def _qwen36_27b(*, mtp: int) -> _Recipe:
    return _qwen36(
        layers=64, hidden=5120, heads=24, kv_heads=4, value_heads=48, width=17408, experts=0, mtp=mtp
    )


def describe(
    name: str, matrix_type: str = "F16", expert_type: str | None = None, types: dict[str, str] | None = None
) -> Described:
    """Return the published model ``name`` with all matrices of one ggml type.

    ``expert_type`` is that of routed experts; ``types`` overrides single tensors by name.
    """
    recipe = _RECIPES[name]()
    chosen = {"matrix": matrix_type, "expert": expert_type or matrix_type, "small": "F32"}
    return Described(
        recipe.hyperparameters,
        tuple(
            (row, shape, (types or {}).get(row, chosen[precision])) for row, shape, precision in recipe.rows
        ),
    )
