"""The three networks in torch: what llama.cpp's qwen35 and dflash graphs compute."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from shape import DRAFT, TARGET, VOCAB
from torch import Tensor, nn

if TYPE_CHECKING:
    from shape import DraftShape, TargetShape

CHUNK = 64


class Norm(nn.Module):
    """RMS norm with a gain."""

    def __init__(self, size: int, eps: float = TARGET.eps) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.weight, self.eps)


def matrix(fan_in: int, fan_out: int, scale: float = 1.0) -> nn.Linear:
    """A bias-free linear layer with a small start."""
    layer = nn.Linear(fan_in, fan_out, bias=False)
    nn.init.normal_(layer.weight, std=scale / math.sqrt(fan_in))
    return layer


def rope_table(positions: Tensor, dim: int, base: float) -> tuple[Tensor, Tensor]:
    """cos and sin, [..., dim/2], for rotating (i, i + dim/2) pairs."""
    freq = base ** (-torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    angle = positions[..., None].float() * freq
    return angle.cos(), angle.sin()


def rotate(x: Tensor, table: tuple[Tensor, Tensor]) -> Tensor:
    """x: [..., T, heads, dim] with a table of [..., T, dim/2]."""
    cos, sin = (t.unsqueeze(-2) for t in table)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Ffn(nn.Module):
    """SwiGLU."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate, self.up = matrix(width, hidden), matrix(width, hidden)
        self.down = matrix(hidden, width, 0.3)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Attention(nn.Module):
    """Gated full attention: the query matrix carries, per head, the query and a sigmoid gate."""

    def __init__(self, s: TargetShape) -> None:
        super().__init__()
        self.s = s
        self.q = matrix(s.width, s.heads * s.head_dim * 2)
        self.k = matrix(s.width, s.kv_heads * s.head_dim)
        self.v = matrix(s.width, s.kv_heads * s.head_dim)
        self.out = matrix(s.heads * s.head_dim, s.width, 0.3)
        self.q_norm, self.k_norm = Norm(s.head_dim), Norm(s.head_dim)

    def heads(self, x: Tensor, table: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
        """Query, key, value as [B, T, heads, dim] (rotated) and the gate [B, T, heads*dim]."""
        s, lead = self.s, x.shape[:-1]
        q, gate = self.q(x).view(*lead, s.heads, 2 * s.head_dim).chunk(2, dim=-1)
        k = self.k(x).view(*lead, s.kv_heads, s.head_dim)
        v = self.v(x).view(*lead, s.kv_heads, s.head_dim)
        q, k = rotate(self.q_norm(q), table), rotate(self.k_norm(k), table)
        return q, k, v, gate.reshape(*lead, s.heads * s.head_dim)

    def finish(self, mixed: Tensor, gate: Tensor) -> Tensor:
        return self.out(mixed * torch.sigmoid(gate))

    def forward(
        self, x: Tensor, table: tuple[Tensor, Tensor], seen: Tensor | None = None
    ) -> Tensor:
        q, k, v, gate = self.heads(x, table)
        repeat = self.s.heads // self.s.kv_heads
        k, v = (t.repeat_interleave(repeat, dim=2) for t in (k, v))
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, is_causal=seen is None)
        return self.finish(mixed.transpose(1, 2).flatten(2), gate)


def delta_rule(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, beta: Tensor) -> Tensor:
    """Gated delta rule in chunks; q, k, v are [B, H, T, D], log_decay and beta [B, H, T]."""
    length = q.shape[2]
    pad = -length % CHUNK
    q, k, v = (F.pad(t, (0, 0, 0, pad)) for t in (q, k, v))
    log_decay, beta = F.pad(log_decay, (0, pad)), F.pad(beta, (0, pad))
    q, k, v = (t.unflatten(2, (-1, CHUNK)) for t in (q, k, v))
    g = log_decay.unflatten(2, (-1, CHUNK)).cumsum(-1)
    beta = beta.unflatten(2, (-1, CHUNK)).unsqueeze(-1)
    tril = torch.ones(CHUNK, CHUNK, dtype=torch.bool).tril()
    decay = (g.unsqueeze(-1) - g.unsqueeze(-2)).masked_fill(~tril, -1e4).exp()
    kb = k * beta
    eye = torch.eye(CHUNK)
    system = eye + (kb @ k.transpose(-1, -2) * decay).tril(-1)
    right = torch.cat((v * beta, kb * g.exp().unsqueeze(-1)), dim=-1)
    solved = torch.linalg.solve_triangular(system, right, upper=False, unitriangular=True)
    u, w = solved.split((v.shape[-1], k.shape[-1]), dim=-1)
    inner = q @ k.transpose(-1, -2) * decay
    q_in = q * g.exp().unsqueeze(-1)
    k_out = k * (g[..., -1:] - g).exp().unsqueeze(-1)
    last = g[..., -1].exp()[..., None, None]
    state = q.new_zeros(*q.shape[:2], k.shape[-1], v.shape[-1])
    outs = []
    for c in range(q.shape[2]):
        fresh = u[:, :, c] - w[:, :, c] @ state
        outs.append(q_in[:, :, c] @ state + inner[:, :, c] @ fresh)
        state = state * last[:, :, c] + k_out[:, :, c].transpose(-1, -2) @ fresh
    return torch.stack(outs, dim=2).flatten(2, 3)[:, :, :length]


class DeltaNet(nn.Module):
    """Gated delta net with a short causal convolution."""

    def __init__(self, s: TargetShape) -> None:
        super().__init__()
        self.s = s
        inner = s.delta_heads * s.delta_dim
        self.qkv = matrix(s.width, 3 * inner)
        self.gate = matrix(s.width, inner)
        self.conv = nn.Parameter(torch.randn(3 * inner, s.conv) * 0.2)
        self.conv.data[:, -1] += 0.7
        self.alpha, self.beta = matrix(s.width, s.delta_heads), matrix(s.width, s.delta_heads)
        self.dt_bias = nn.Parameter(torch.linspace(-5.0, -1.0, s.delta_heads))
        self.a_log = nn.Parameter(torch.zeros(s.delta_heads))
        self.norm = Norm(s.delta_dim)
        self.out = matrix(inner, s.width, 0.3)

    def forward(self, x: Tensor) -> Tensor:
        s = self.s
        mixed = F.pad(self.qkv(x).transpose(1, 2), (s.conv - 1, 0))
        mixed = F.silu(F.conv1d(mixed, self.conv.unsqueeze(1), groups=mixed.shape[1]))
        q, k, v = mixed.unflatten(1, (3, s.delta_heads, s.delta_dim)).transpose(-1, -2).unbind(1)
        q, k = (F.normalize(t, dim=-1, eps=s.eps) for t in (q, k))
        decay = -self.a_log.exp() * F.softplus(self.alpha(x) + self.dt_bias)
        beta = torch.sigmoid(self.beta(x)).transpose(1, 2)
        mixed = delta_rule(q / math.sqrt(s.delta_dim), k, v, decay.transpose(1, 2), beta)
        gate = self.gate(x).unflatten(-1, (s.delta_heads, s.delta_dim))
        return self.out((self.norm(mixed.transpose(1, 2)) * F.silu(gate)).flatten(2))


class Layer(nn.Module):
    """One pre-norm layer of the trunk."""

    def __init__(self, s: TargetShape, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.norm, self.post_norm = Norm(s.width), Norm(s.width)
        self.mixer: Attention | DeltaNet = Attention(s) if kind == "A" else DeltaNet(s)
        self.ffn = Ffn(s.width, s.ffn)

    def forward(
        self, x: Tensor, table: tuple[Tensor, Tensor], seen: Tensor | None = None
    ) -> Tensor:
        inner = self.norm(x)
        x = x + (self.mixer(inner, table, seen) if self.kind == "A" else self.mixer(inner))
        return x + self.ffn(self.post_norm(x))


class Target(nn.Module):
    """The trunk with untied embedding and output."""

    def __init__(self, s: TargetShape = TARGET) -> None:
        super().__init__()
        self.s = s
        self.embed = nn.Embedding(VOCAB, s.width)
        nn.init.normal_(self.embed.weight, std=0.5)
        self.layers = nn.ModuleList(Layer(s, kind) for kind in s.layers)
        self.norm = Norm(s.width)
        self.head = matrix(s.width, VOCAB)

    def table(self, length: int, start: int = 0) -> tuple[Tensor, Tensor]:
        """The rotation of positions start..start+length-1."""
        positions = torch.arange(start, start + length)
        return rope_table(positions, self.s.head_dim, self.s.rope_base)

    def trace(self, tokens: Tensor, seen: Tensor | None = None) -> tuple[list[Tensor], Tensor]:
        """Inputs of layers 0..depth (the last is the trunk's output) and the normed hidden.

        `seen` [B, 1, T, T] says who attends to whom; without it, all that came before.
        """
        table = self.table(tokens.shape[1])
        x = self.embed(tokens)
        inputs = [x]
        for layer in self.layers:
            x = layer(x, table, seen)
            inputs.append(x)
        return inputs, self.norm(x)

    def forward(self, tokens: Tensor, seen: Tensor | None = None) -> Tensor:
        return self.head(self.trace(tokens, seen)[1])


class Mtp(nn.Module):
    """The next-token head: at position p it sees token p and the hidden of p-1, predicts p+1."""

    def __init__(self, s: TargetShape = TARGET) -> None:
        super().__init__()
        self.s = s
        self.e_norm, self.h_norm = Norm(s.width), Norm(s.width)
        self.join = matrix(2 * s.width, s.width)
        self.layer = Layer(s, "A")
        self.norm = Norm(s.width)

    def enter(self, embedded: Tensor, hidden: Tensor) -> Tensor:
        """The block's input."""
        return self.join(torch.cat((self.e_norm(embedded), self.h_norm(hidden)), dim=-1))

    def first(self, x: Tensor, table: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """The step whose inputs are all real; returns the normed hidden and its keys, values."""
        attention = self.layer.mixer
        q, k, v, gate = attention.heads(self.layer.norm(x), table)
        q, kk, vv = (t.transpose(1, 2) for t in (q, self.wide(k), self.wide(v)))
        mixed = F.scaled_dot_product_attention(q, kk, vv, is_causal=True)
        return self.leave(x, mixed.transpose(1, 2).flatten(2), gate), k, v

    def wide(self, t: Tensor) -> Tensor:
        return t.repeat_interleave(self.s.heads // self.s.kv_heads, dim=2)

    def leave(self, x: Tensor, mixed: Tensor, gate: Tensor) -> Tensor:
        x = x + self.layer.mixer.finish(mixed, gate)
        return self.norm(x + self.layer.ffn(self.layer.post_norm(x)))


class Convolution(torch.autograd.Function):
    """A causal convolution with a weight of its own at every position.

    x is [N, T, width], dynamic [N, T, kernel, groups] and base [kernel, width]. Written by hand,
    because autograd's slices of padded copies took more time than all matrices of the drafter.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, dynamic: Tensor, base: Tensor) -> Tensor:
        weight = dynamic.repeat_interleave(x.shape[-1] // dynamic.shape[-1], dim=-1) + base
        ctx.save_for_backward(x, weight)
        ctx.groups = dynamic.shape[-1]
        out = x * weight[:, :, 0]
        for t in range(1, len(base)):
            out[:, t:].addcmul_(x[:, :-t], weight[:, t:, t])
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        kernel, length = weight.shape[2], x.shape[1]
        to_x = grad * weight[:, :, 0]
        to_dynamic = grad.new_zeros(*weight.shape[:3], ctx.groups)
        to_base = grad.new_empty(kernel, x.shape[-1])
        for t in range(kernel):
            product = grad[:, t:] * x[:, : length - t]
            to_dynamic[:, t:, t] = product.unflatten(-1, (ctx.groups, -1)).sum(-1)
            to_base[t] = product.sum((0, 1))
            if t:
                to_x[:, :-t].addcmul_(grad[:, t:], weight[:, t:, t])
        return to_x, to_dynamic, to_base


class DraftLayer(nn.Module):
    """One DFlash2 layer: attention and SwiGLU, each between two convolutions."""

    def __init__(self, width: int, d: DraftShape) -> None:
        super().__init__()
        self.d = d
        self.norm, self.ffn_norm = Norm(width), Norm(width)
        self.q = matrix(width, d.heads * d.head_dim)
        self.k = matrix(width, d.kv_heads * d.head_dim)
        self.v = matrix(width, d.kv_heads * d.head_dim)
        self.out = matrix(d.heads * d.head_dim, width, 0.3)
        self.q_norm, self.k_norm = Norm(d.head_dim), Norm(d.head_dim)
        self.ffn = Ffn(width, d.ffn)
        taps = 2 * d.conv_kernel * (width // d.conv_group)
        self.attn_conv, self.ffn_conv = (matrix(width, taps, 0.05) for _ in range(2))
        self.attn_base, self.ffn_base = (nn.Parameter(self.start(width)) for _ in range(2))

    def start(self, width: int) -> Tensor:
        """Both convolutions begin as the identity: tap 0 is the position itself."""
        base = torch.zeros(2, self.d.conv_kernel, width)
        base[:, 0] = 1.0
        return base

    def convolve(self, x: Tensor, dynamic: Tensor, base: Tensor, side: int) -> Tensor:
        """x: [B, A*block, width]; tap t looks t positions back inside the block."""
        d, whole = self.d, x.shape
        x, dynamic = (t.reshape(-1, d.block, t.shape[-1]) for t in (x, dynamic))
        taps = dynamic.unflatten(-1, (2, d.conv_kernel, -1))[..., side, :, :]
        return Convolution.apply(x, taps, base[side]).reshape(whole)

    def keys(self, x: Tensor, table: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        d = self.d
        k = self.k(x).unflatten(-1, (d.kv_heads, d.head_dim))
        return rotate(self.k_norm(k), table), self.v(x).unflatten(-1, (d.kv_heads, d.head_dim))

    def queries(self, x: Tensor, table: tuple[Tensor, Tensor]) -> Tensor:
        q = self.q(x).unflatten(-1, (self.d.heads, self.d.head_dim))
        return rotate(self.q_norm(q), table)


class Draft(nn.Module):
    """The DFlash2 drafter: a block of masks denoised in one pass, then a low-rank selector."""

    def __init__(self, s: TargetShape = TARGET, d: DraftShape = DRAFT) -> None:
        super().__init__()
        self.s, self.d = s, d
        self.fuse = matrix(len(d.taps) * s.width, s.width)
        self.fuse_norm, self.norm = Norm(s.width), Norm(s.width)
        self.layers = nn.ModuleList(DraftLayer(s.width, d) for _ in range(d.layers))
        self.prev = nn.Parameter(torch.randn(VOCAB, d.rank) * 0.1)
        self.next = nn.Parameter(torch.randn(VOCAB, d.rank) * 0.1)
        self.select = matrix(s.width, d.rank)
        self.mask_row = nn.Parameter(torch.randn(s.width) * 0.5)

    def context(self, inputs: list[Tensor]) -> Tensor:
        """The target's features, fused; [B, T, width]."""
        return self.fuse_norm(self.fuse(torch.cat([inputs[k] for k in self.d.taps], dim=-1)))

    def forward(self, first: Tensor, context: Tensor, at: Tensor) -> Tensor:
        """Denoise A blocks a row at once.

        first [B, A, width] embeds the anchor tokens, context [B, T, width] is the fused features
        of positions 0..T-1, at [B, A] the anchors' positions: a block sees the context before its
        anchor and itself. Returns the normed hidden, [B, A, block, width].
        """
        d, (rows, anchors), length = self.d, at.shape, context.shape[1]
        rest = self.mask_row.expand(rows, anchors, d.block - 1, -1)
        x = torch.cat((first.unsqueeze(2), rest), dim=2).flatten(1, 2)
        places = (at.unsqueeze(-1) + torch.arange(d.block)).flatten(1)
        block_table = rope_table(places, d.head_dim, self.s.rope_base)
        past_table = rope_table(torch.arange(length), d.head_dim, self.s.rope_base)
        seen = self.visible(at, length)
        for layer in self.layers:
            past = layer.keys(context, past_table)
            x = self.step(layer, x, block_table, past, seen)
        return self.norm(x).unflatten(1, (anchors, d.block))

    def visible(self, at: Tensor, length: int) -> Tensor:
        """[B, 1, A*block, T + A*block]: what each block position may attend to."""
        block, anchors = self.d.block, at.shape[1]
        past = torch.arange(length) < at.repeat_interleave(block, dim=1).unsqueeze(-1)
        owner = torch.arange(anchors).repeat_interleave(block)
        own = (owner.unsqueeze(0) == owner.unsqueeze(1)).expand(at.shape[0], -1, -1)
        return torch.cat((past, own), dim=-1).unsqueeze(1)

    def step(
        self,
        layer: DraftLayer,
        x: Tensor,
        table: tuple[Tensor, Tensor],
        past: tuple[Tensor, Tensor],
        seen: Tensor,
    ) -> Tensor:
        """One layer over the blocks of a row."""
        normed = layer.norm(x)
        dynamic = layer.attn_conv(normed)
        normed = layer.convolve(normed, dynamic, layer.attn_base, 0)
        q = layer.queries(normed, table)
        own = layer.keys(normed, table)
        repeat = self.d.heads // self.d.kv_heads
        k, v = (torch.cat((c, t), dim=1) for c, t in zip(past, own, strict=True))
        k, v = (t.repeat_interleave(repeat, dim=2).transpose(1, 2) for t in (k, v))
        mixed = F.scaled_dot_product_attention(q.transpose(1, 2), k, v, attn_mask=seen)
        mixed = layer.out(mixed.transpose(1, 2).flatten(2))
        x = x + layer.convolve(mixed, dynamic, layer.attn_base, 1)
        normed = layer.ffn_norm(x)
        dynamic = layer.ffn_conv(normed)
        inner = layer.ffn(layer.convolve(normed, dynamic, layer.ffn_base, 0))
        return x + layer.convolve(inner, dynamic, layer.ffn_base, 1)
