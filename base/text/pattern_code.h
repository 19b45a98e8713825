/* The program of a pattern. Private to pattern*.c. */
#ifndef BASE_PATTERN_CODE_H
#define BASE_PATTERN_CODE_H

#include "pattern.h"
#include "vec.h"

enum pattern_do {
    PATTERN_SET,   /* one byte of set x */
    PATTERN_SPLIT, /* go on at x and at y; both relative, so that code can be copied */
    PATTERN_JUMP,  /* go on at x */
    PATTERN_BEGIN,
    PATTERN_END,
    PATTERN_EDGE,   /* of a word */
    PATTERN_INSIDE, /* no such edge */
    PATTERN_FOUND
};
struct pattern_op {
    enum pattern_do what;
    int x, y;
};
struct pattern_set {
    uint64_t bits[4];
};
struct pattern {
    VEC(struct pattern_op) code;
    VEC(struct pattern_set) sets;
    struct pattern_set first; /* bytes that a match may begin with */
    bool may_be_empty;        /* then first says nothing */
};

/* What is being read. Its functions return 0 or DET_EINVAL. */
struct pattern_parser {
    const char *text, *at;
    struct pattern *p;
    bool any_case;
    int depth;
    struct det_err *err;
};
/* Fails with what is wrong at the place at hand. */
int pattern_wrong(const struct pattern_parser *ps, const char *what);
/* In both cases where the pattern says so. */
void pattern_add_char(const struct pattern_parser *ps, struct pattern_set *set, unsigned char c);
bool pattern_is_class(char c); /* of "dDwWsS" */
void pattern_add_class(struct pattern_set *set, char letter);
void pattern_set_invert(struct pattern_set *set);
/* The character that an escape stands for; at is behind the backslash. */
int pattern_escaped(struct pattern_parser *ps, int *ret);
/* [..]; at is behind the bracket. */
int pattern_bracket(struct pattern_parser *ps, struct pattern_set *set);

static inline bool pattern_set_has(const struct pattern_set *s, unsigned char c)
{
    return s->bits[c / 64] >> (c % 64) & 1;
}

static inline void pattern_set_add(struct pattern_set *s, unsigned char c)
{
    s->bits[c / 64] |= UINT64_C(1) << (c % 64);
}

#endif
