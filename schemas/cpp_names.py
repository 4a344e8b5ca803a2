"""Names that firmware can give a C++ namespace beside those that it has."""

import re

# C++20's keywords and alternative tokens, then what compilers define as macros on common systems and what firmware has already.
_WORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await co_return
    co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast
    else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof static
    static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned using
    virtual void volatile wchar_t while xor xor_eq
    linux unix
    main std tflite
"""
RESERVED = frozenset(_WORDS.split())


def cpp_namespace(name: str) -> str:
    """Gives back a name that C++ takes for a namespace beside others.

    Raises:
        ValueError: it isn't one, or is reserved; the text tells the fix.

    >>> cpp_namespace("digits_v2")
    'digits_v2'
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or "__" in name:
        raise ValueError(
            "not a name that C++ takes for a namespace; give letters of a to z, digits and single underscores, a letter first, for example "
            f"{namespace_of(name)!r}"
        )
    if name in RESERVED:
        raise ValueError(f"taken in C++; give another name, for example {namespace_of(name)!r}")
    return name


def namespace_of(name: str) -> str:
    """A namespace made of a model's name: its words in small letters; `model` where there is none.

    >>> namespace_of("Handwritten digits, v2"), namespace_of("8 x 8"), namespace_of("")
    ('handwritten_digits_v2', 'model_8_x_8', 'model')
    """
    made = "_".join(re.findall(r"[a-z0-9]+", name.lower())) or "model"
    return made if made[0].isalpha() and made not in RESERVED else f"model_{made}"
