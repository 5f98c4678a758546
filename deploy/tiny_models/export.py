"""Torch weights to the two GGUF files a stock llama.cpp loads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
from shape import DRAFT, SPECIALS, TARGET, VOCAB, special

if TYPE_CHECKING:
    from collections.abc import Iterator

    from net import Draft, DraftLayer, Mtp, Target
    from torch import Tensor, nn

TEMPLATE = Path(__file__).with_name("chat_template.jinja")
Q8 = gguf.GGMLQuantizationType.Q8_0
F32 = gguf.GGMLQuantizationType.F32
Named = tuple[str, "np.ndarray[Any, Any]", gguf.GGMLQuantizationType]


def plain(t: Tensor) -> np.ndarray[Any, Any]:
    """A float32 copy."""
    return t.detach().float().contiguous().numpy()


def dense(name: str, layer: nn.Module) -> Named:
    """A quantised matrix."""
    return f"{name}.weight", plain(layer.weight), Q8


def gain(name: str, t: Tensor) -> Named:
    """A small tensor kept exact."""
    return name, plain(t), F32


def attention(pre: str, m: nn.Module) -> Iterator[Named]:
    yield dense(f"{pre}.attn_q", m.q)
    yield dense(f"{pre}.attn_k", m.k)
    yield dense(f"{pre}.attn_v", m.v)
    yield dense(f"{pre}.attn_output", m.out)
    yield gain(f"{pre}.attn_q_norm.weight", m.q_norm.weight)
    yield gain(f"{pre}.attn_k_norm.weight", m.k_norm.weight)


def delta(pre: str, m: nn.Module) -> Iterator[Named]:
    yield dense(f"{pre}.attn_qkv", m.qkv)
    yield dense(f"{pre}.attn_gate", m.gate)
    yield gain(f"{pre}.ssm_conv1d.weight", m.conv)
    yield gain(f"{pre}.ssm_dt.bias", m.dt_bias)
    yield gain(f"{pre}.ssm_a", -m.a_log.exp())
    yield gain(f"{pre}.ssm_beta.weight", m.beta.weight)
    yield gain(f"{pre}.ssm_alpha.weight", m.alpha.weight)
    yield gain(f"{pre}.ssm_norm.weight", m.norm.weight)
    yield dense(f"{pre}.ssm_out", m.out)


def block(pre: str, layer: nn.Module) -> Iterator[Named]:
    yield gain(f"{pre}.attn_norm.weight", layer.norm.weight)
    yield gain(f"{pre}.post_attention_norm.weight", layer.post_norm.weight)
    yield from (attention if layer.kind == "A" else delta)(pre, layer.mixer)
    yield from ffn(pre, layer.ffn)


def ffn(pre: str, m: nn.Module) -> Iterator[Named]:
    for part in ("gate", "up", "down"):
        yield dense(f"{pre}.ffn_{part}", getattr(m, part))


def silent(pre: str, like: nn.Module) -> Iterator[Named]:
    """An attention layer that adds nothing: zero matrices, unit norms."""
    for name, data, kind in block(pre, like):
        norm = "norm" in name
        yield name, np.ones_like(data) if norm else np.zeros_like(data), kind


def target_tensors(target: Target, mtp: Mtp, mask_row: Tensor) -> Iterator[Named]:
    embed = target.embed.weight.detach().clone()
    # The drafter shares the target's embedding, so its mask row lives here.
    embed[special("<|mask|>")] = mask_row.detach()
    yield "token_embd.weight", plain(embed), Q8
    yield dense("output", target.head)
    yield gain("output_norm.weight", target.norm.weight)
    for i, layer in enumerate(target.layers):
        yield from block(f"blk.{i}", layer)
    depth = TARGET.depth
    for i in range(TARGET.zero_layers):
        yield from silent(f"blk.{depth + i}", mtp.layer)
    pre = f"blk.{depth + TARGET.zero_layers}"
    yield from block(pre, mtp.layer)
    yield dense(f"{pre}.nextn.eh_proj", mtp.join)
    yield gain(f"{pre}.nextn.enorm.weight", mtp.e_norm.weight)
    yield gain(f"{pre}.nextn.hnorm.weight", mtp.h_norm.weight)
    yield gain(f"{pre}.nextn.shared_head_norm.weight", mtp.norm.weight)


def draft_layer(pre: str, layer: DraftLayer) -> Iterator[Named]:
    yield gain(f"{pre}.attn_norm.weight", layer.norm.weight)
    yield gain(f"{pre}.ffn_norm.weight", layer.ffn_norm.weight)
    yield from attention(pre, layer)
    yield from ffn(pre, layer.ffn)
    for part, base, proj in (
        ("attn", layer.attn_base, layer.attn_conv),
        ("ffn", layer.ffn_base, layer.ffn_conv),
    ):
        yield gain(f"{pre}.{part}_conv_base", base)
        yield dense(f"{pre}.{part}_conv_proj", proj)


def draft_tensors(draft: Draft) -> Iterator[Named]:
    yield dense("fc", draft.fuse)
    yield gain("enc.output_norm.weight", draft.fuse_norm.weight)
    yield gain("output_norm.weight", draft.norm.weight)
    for i, layer in enumerate(draft.layers):
        yield from draft_layer(f"blk.{i}", layer)
    yield "selector_predecessor.weight", plain(draft.prev), Q8
    yield "selector_successor.weight", plain(draft.next), Q8
    yield dense("selector_hidden", draft.select)


def write_vocabulary(w: gguf.GGUFWriter, tokens: list[str], merges: list[str]) -> None:
    """The tokenizer, in full in both files."""
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen35")
    w.add_token_list(tokens)
    w.add_token_types([control if t in SPECIALS else normal for t in tokens])
    w.add_token_merges(merges)
    w.add_eos_token_id(special("<|im_end|>"))
    w.add_eot_token_id(special("<|im_end|>"))
    w.add_bos_token_id(special("<|endoftext|>"))
    w.add_pad_token_id(special("<|endoftext|>"))
    w.add_add_bos_token(False)


def target_header(w: gguf.GGUFWriter) -> None:
    s = TARGET
    depth = s.depth + s.zero_layers
    w.add_name("specroute-tiny")
    w.add_license("Apache-2.0")
    # Cut-off sampling makes a small model's prose repeat itself, which is falsely predictable.
    w.add_sampling_top_k(0)
    w.add_sampling_top_p(1.0)
    w.add_sampling_min_p(0.0)
    w.add_context_length(s.context)
    w.add_embedding_length(s.width)
    w.add_block_count(depth + 1)
    w.add_feed_forward_length(s.ffn)
    w.add_head_count(s.heads)
    w.add_head_count_kv(s.kv_heads)
    w.add_key_length(s.head_dim)
    w.add_value_length(s.head_dim)
    w.add_layer_norm_rms_eps(s.eps)
    w.add_rope_freq_base(s.rope_base)
    w.add_rope_dimension_count(s.head_dim)
    w.add_rope_dimension_sections([11, 11, 10, 0])
    w.add_ssm_conv_kernel(s.conv)
    w.add_ssm_state_size(s.delta_dim)
    w.add_ssm_group_count(s.delta_heads)
    w.add_ssm_time_step_rank(s.delta_heads)
    w.add_ssm_inner_size(s.delta_heads * s.delta_dim)
    kinds = [kind == "D" for kind in s.layers] + [False] * (s.zero_layers + 1)
    w.add_array("qwen35.attention.recurrent_layers", kinds)
    w.add_uint32("qwen35.nextn_predict_layers", 1)


def draft_header(w: gguf.GGUFWriter) -> None:
    s, d = TARGET, DRAFT
    w.add_name("specroute-tiny-dflash2")
    w.add_license("Apache-2.0")
    w.add_context_length(s.context)
    w.add_embedding_length(s.width)
    w.add_block_count(d.layers)
    w.add_feed_forward_length(d.ffn)
    w.add_head_count(d.heads)
    w.add_head_count_kv(d.kv_heads)
    w.add_key_length(d.head_dim)
    w.add_value_length(d.head_dim)
    w.add_layer_norm_rms_eps(s.eps)
    w.add_rope_freq_base(s.rope_base)
    w.add_rope_dimension_sections([d.head_dim // 2, 0, 0, 0])
    w.add_uint32("dflash.block_size", d.block)
    w.add_array("dflash.target_layers", list(d.taps))
    w.add_uint32("dflash.conv_kernel_size", d.conv_kernel)
    w.add_uint32("dflash.conv_group_size", d.conv_group)
    w.add_uint32("dflash.selector_rank", d.rank)
    w.add_uint32("dflash.selector_top_k", d.top_k)
    w.add_mask_token_id(special("<|mask|>"))


def finish(w: gguf.GGUFWriter, named: Iterator[Named]) -> None:
    """Quantise, write, close."""
    for name, data, kind in named:
        w.add_tensor(name, gguf.quants.quantize(data, kind), raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def export(
    folder: Path, nets: tuple[Target, Mtp, Draft], tokens: list[str], merges: list[str]
) -> None:
    """Write target.gguf and draft.gguf into the folder."""
    target, mtp, draft = nets
    assert len(tokens) == VOCAB
    w = gguf.GGUFWriter(str(folder / "target.gguf"), "qwen35")
    target_header(w)
    write_vocabulary(w, tokens, merges)
    w.add_chat_template(TEMPLATE.read_text(encoding="utf-8"))
    finish(w, target_tensors(target, mtp, draft.mask_row))
    w = gguf.GGUFWriter(str(folder / "draft.gguf"), "dflash")
    draft_header(w)
    write_vocabulary(w, tokens, merges)
    finish(w, draft_tensors(draft))
