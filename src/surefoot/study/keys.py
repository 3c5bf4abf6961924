"""Keys and signed checkpoints: a small note that says where a journal stood, kept by somebody else.

Whoever may write to a journal can make all of it anew, hashes and all. A checkpoint that was signed and given away
before then proves that a journal is, or is not, the one it was. A second party can countersign it as a witness.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..problem import SurefootError
from .rows import now
from .text import file as named

BODY = ("surefoot", "format", "study", "events", "head", "at")  # what is signed


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise SurefootError("signed checkpoints need cryptography: pip install 'surefoot[trust]'") from error
    return ed25519


@dataclass(frozen=True)
class Key:
    """Of somebody who signs. `public` may be given to everybody."""

    private: Any
    public: str

    @classmethod
    def new(cls, file: str | Path) -> Key:
        """A new one, in a file that only its owner can read."""
        private = _ed25519().Ed25519PrivateKey.generate()
        path = named(file)
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
                json.dump({"surefoot": "key", "private": private.private_bytes_raw().hex()}, out)
        except FileExistsError:
            raise SurefootError(f"{path} is there already: a key replaces nothing") from None
        except OSError as error:
            raise SurefootError(f"cannot write {path}: {error.strerror or error}") from error
        return cls(private, private.public_key().public_bytes_raw().hex())

    @classmethod
    def load(cls, file: str | Path) -> Key:
        path, kind = named(file), _ed25519()
        try:
            if os.name == "posix" and path.stat().st_mode & 0o077:
                raise SurefootError(f"{path} can be read by others: chmod 600 {path}, or make a new key")
            data = json.loads(path.read_text(encoding="utf-8"))
            private = kind.Ed25519PrivateKey.from_private_bytes(bytes.fromhex(data["private"]))
        except OSError as error:
            raise SurefootError(f"cannot read {path}: {error.strerror or error}") from error
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, SurefootError):
                raise
            raise SurefootError(f"{path} is not a key: make one with `surefoot key new`") from error
        return cls(private, private.public_key().public_bytes_raw().hex())


def _text(note: Mapping[str, Any], at: str) -> bytes:
    return json.dumps([note[key] for key in BODY] + [at]).encode()


def sign(note: Mapping[str, Any], key: Key) -> dict[str, Any]:
    body = {"surefoot": "checkpoint", "format": 1, **note, "at": now().isoformat(timespec="seconds")}
    return countersign(body | {"signatures": []}, key)


def countersign(note: Mapping[str, Any], key: Key) -> dict[str, Any]:
    """The note with one more signature: of who made it, or of a witness who was shown it."""
    signers(note)
    at = now().isoformat(timespec="seconds")
    one = {"key": key.public, "at": at, "signature": key.private.sign(_text(note, at)).hex()}
    return {**note, "signatures": [*note["signatures"], one]}


def signers(note: Any) -> set[str]:
    """The public keys whose signatures hold; an error where one does not."""
    from cryptography.exceptions import InvalidSignature

    kind = _ed25519()
    try:
        for one in note["signatures"]:
            public = kind.Ed25519PublicKey.from_public_bytes(bytes.fromhex(one["key"]))
            public.verify(bytes.fromhex(one["signature"]), _text(note, one["at"]))
        return {one["key"] for one in note["signatures"] if note["surefoot"] == "checkpoint"}
    except (InvalidSignature, KeyError, TypeError, ValueError, AttributeError) as error:
        raise SurefootError("this is not a checkpoint, or it was changed after it was signed") from error
