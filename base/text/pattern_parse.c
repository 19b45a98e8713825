/* From the text of a pattern to its program. Repeating an expression copies its code. */
#include "pattern_code.h"

#include <ctype.h>
#include <stdlib.h>

enum { GROUPS_DEEP_MAX = 50, REPEAT_MAX = 1000 };

/* ---- code ---- */

static int check_room(const struct pattern_parser *ps)
{
    if (ps->p->code.n < PATTERN_SIZE_MAX)
        return 0;
    return pattern_wrong(ps, "the pattern is too large when its repetitions are written out");
}

static int emit_op(struct pattern_parser *ps, enum pattern_do what, int x, int y)
{
    int rc = check_room(ps);
    if (rc == 0)
        vec_push(&ps->p->code, (struct pattern_op){what, x, y});
    return rc;
}

static int emit_set(struct pattern_parser *ps, const struct pattern_set *set)
{
    int rc = emit_op(ps, PATTERN_SET, (int)ps->p->sets.n, 0);
    if (rc == 0)
        vec_push(&ps->p->sets, *set);
    return rc;
}

static int emit_char(struct pattern_parser *ps, unsigned char c)
{
    struct pattern_set set = {0};
    pattern_add_char(ps, &set, c);
    return emit_set(ps, &set);
}

/* ---- expressions ---- */

static int parse_alternatives(struct pattern_parser *ps);

/* "i", "-i", "ism:" and so on, behind "(?". */
static int parse_flags(struct pattern_parser *ps)
{
    bool on = true;
    for (; *ps->at && !strchr(":)", *ps->at); ps->at++) {
        if (*ps->at == '-' && on)
            on = false;
        else if (*ps->at == 'i')
            ps->any_case = on;
        else if (!strchr("smU", *ps->at)) /* these change nothing for one line */
            return pattern_wrong(ps, "after (? come a name, the flags i, s, m, U, or a colon");
    }
    return *ps->at ? 0 : pattern_wrong(ps, "a ( that is not closed");
}

static int parse_name(struct pattern_parser *ps)
{
    const char *end = strchr(ps->at, '>');
    if (ps->at[1] == '=' || ps->at[1] == '!')
        return pattern_wrong(ps, "look-around is not available");
    if (!end)
        return pattern_wrong(ps, "a name of a group that does not end");
    ps->at = end;
    return 0;
}

/* What stands between "(?" and the expression. *ret_empty: there is none, these were flags. */
static int group_head(struct pattern_parser *ps, bool *ret_empty)
{
    int rc;
    ps->at++;
    if (*ps->at == '=' || *ps->at == '!')
        return pattern_wrong(ps, "look-around is not available");
    ps->at += ps->at[0] == 'P' && ps->at[1] == '<';
    rc = *ps->at == '<' ? parse_name(ps) : parse_flags(ps);
    if (rc < 0)
        return rc;
    *ret_empty = *ps->at == ')';
    ps->at++;
    return 0;
}

/* at is behind the parenthesis. */
static int parse_group(struct pattern_parser *ps)
{
    bool any_case = ps->any_case, is_empty = false;
    int rc = 0;
    if (ps->depth == GROUPS_DEEP_MAX)
        return pattern_wrong(ps, "too many groups in one another");
    if (*ps->at == '?')
        rc = group_head(ps, &is_empty);
    if (rc < 0 || is_empty)
        return rc;
    ps->depth++;
    rc = parse_alternatives(ps);
    ps->depth--;
    ps->any_case = any_case;
    if (rc == 0 && *ps->at++ != ')')
        rc = det_fail(ps->err, DET_EINVAL, "a ( that is not closed, in \"%s\"", ps->text);
    return rc;
}

static int parse_escape(struct pattern_parser *ps)
{
    struct pattern_set set = {0};
    int c = 0;
    char letter = *ps->at;
    const char *place = letter ? strchr("bBAz", letter) : NULL;
    if (pattern_is_class(letter))
        pattern_add_class(&set, letter);
    ps->at += place || pattern_is_class(letter);
    if (pattern_is_class(letter))
        return emit_set(ps, &set);
    if (place)
        return emit_op(ps,
                       letter == 'b'   ? PATTERN_EDGE
                       : letter == 'B' ? PATTERN_INSIDE
                       : letter == 'A' ? PATTERN_BEGIN
                                       : PATTERN_END,
                       0, 0);
    int rc = pattern_escaped(ps, &c);
    return rc < 0 ? rc : emit_char(ps, (unsigned char)c);
}

/* A character, all its bytes if it has several, so that what is repeated is the whole of it. */
static int parse_literal(struct pattern_parser *ps)
{
    int rc = emit_char(ps, (unsigned char)*ps->at++);
    while (rc == 0 && ((unsigned char)*ps->at & 0xC0) == 0x80)
        rc = emit_char(ps, (unsigned char)*ps->at++);
    return rc;
}

static int parse_atom(struct pattern_parser *ps)
{
    struct pattern_set set = {0};
    int rc;
    switch (*ps->at) {
    case '(': ps->at++; return parse_group(ps);
    case '[':
        ps->at++;
        rc = pattern_bracket(ps, &set);
        return rc < 0 ? rc : emit_set(ps, &set);
    case '\\': ps->at++; return parse_escape(ps);
    case '.':
        ps->at++;
        pattern_set_add(&set, '\n');
        pattern_set_invert(&set);
        return emit_set(ps, &set);
    case '^':
    case '$': return emit_op(ps, *ps->at++ == '^' ? PATTERN_BEGIN : PATTERN_END, 0, 0);
    case '*':
    case '+':
    case '?': return pattern_wrong(ps, "nothing to repeat");
    default: return parse_literal(ps);
    }
}

struct times {
    int min, max; /* max -1: any number */
};

static bool parse_number(const char **at, int *ret)
{
    const char *from = *at;
    for (*ret = 0; isdigit((unsigned char)**at) && *at - from < 5; (*at)++)
        *ret = *ret * 10 + (**at - '0');
    return *at > from;
}

/* False: there is none here; a { that begins none is a character. */
static bool parse_quantifier(struct pattern_parser *ps, struct times *ret)
{
    const char *at = ps->at;
    *ret = *at == '+'   ? (struct times){1, -1}
           : *at == '?' ? (struct times){0, 1}
                        : (struct times){0, -1};
    if (*at == '{') {
        at++;
        if (!parse_number(&at, &ret->min))
            return false;
        ret->max = ret->min;
        if (*at == ',' && (at++, !parse_number(&at, &ret->max)))
            ret->max = -1;
        if (*at != '}')
            return false;
    } else if (!*at || !strchr("*+?", *at)) {
        return false;
    }
    ps->at = at + 1;
    ps->at += *ps->at == '?'; /* fewer first: it matches or not all the same */
    return true;
}

struct block {
    const struct pattern_op *v;
    size_t n;
};

static int put_block(struct pattern_parser *ps, const struct block *b)
{
    int rc = 0;
    for (size_t i = 0; i < b->n && rc == 0; i++)
        rc = emit_op(ps, b->v[i].what, b->v[i].x, b->v[i].y);
    return rc;
}

static int put_any_number(struct pattern_parser *ps, const struct block *b)
{
    int n = (int)b->n;
    int rc = emit_op(ps, PATTERN_SPLIT, 1, n + 2);
    if (rc == 0)
        rc = put_block(ps, b);
    return rc < 0 ? rc : emit_op(ps, PATTERN_JUMP, -(n + 1), 0);
}

/* The code from `start` on becomes as many of it. */
static int repeat_block(struct pattern_parser *ps, size_t start, const struct times *t)
{
    struct block b = {.n = ps->p->code.n - start};
    int rc = 0;
    if (t->min > REPEAT_MAX || t->max > REPEAT_MAX || (t->max >= 0 && t->max < t->min))
        return pattern_wrong(ps, "a number of repetitions beyond 1000, or {more,less}");
    if (b.n == 0)
        return 0; /* nothing, so many times */
    det_cleanup(freep) struct pattern_op *copy =
        det_memdup(ps->p->code.v + start, b.n * sizeof *copy);
    b.v = copy;
    ps->p->code.n = start;
    for (int i = 0; i < t->min && rc == 0; i++)
        rc = put_block(ps, &b);
    if (t->max < 0 && rc == 0)
        rc = put_any_number(ps, &b);
    for (int i = t->min; i < t->max && rc == 0; i++) {
        rc = emit_op(ps, PATTERN_SPLIT, 1, (int)b.n + 1);
        if (rc == 0)
            rc = put_block(ps, &b);
    }
    return rc;
}

static int parse_sequence(struct pattern_parser *ps)
{
    int rc = 0;
    while (rc == 0 && *ps->at && *ps->at != '|' && *ps->at != ')') {
        struct times t;
        size_t start = ps->p->code.n;
        rc = parse_atom(ps);
        while (rc == 0 && parse_quantifier(ps, &t))
            rc = repeat_block(ps, start, &t);
    }
    return rc;
}

static int parse_alternatives(struct pattern_parser *ps)
{
    size_t start = ps->p->code.n;
    int rc = parse_sequence(ps);
    if (rc < 0 || *ps->at != '|')
        return rc;
    ps->at++;
    rc = check_room(ps);
    if (rc < 0)
        return rc;
    vec_insert(&ps->p->code, start, (struct pattern_op){PATTERN_SPLIT, 1, 0});
    size_t jump = ps->p->code.n;
    rc = emit_op(ps, PATTERN_JUMP, 0, 0);
    if (rc == 0)
        rc = parse_alternatives(ps);
    if (rc < 0)
        return rc;
    ps->p->code.v[start].y = (int)(jump + 1 - start);
    ps->p->code.v[jump].x = (int)(ps->p->code.n - jump);
    return 0;
}

/* ---- what a match may begin with ---- */

static void explore_from(struct pattern *p, bool *seen, int pc)
{
    if (seen[pc])
        return;
    seen[pc] = true;
    const struct pattern_op *op = &p->code.v[pc];
    if (op->what == PATTERN_FOUND) {
        p->may_be_empty = true;
    } else if (op->what == PATTERN_SET) {
        for (size_t i = 0; i < 4; i++)
            p->first.bits[i] |= p->sets.v[op->x].bits[i];
    } else if (op->what == PATTERN_SPLIT) {
        explore_from(p, seen, pc + op->x);
        explore_from(p, seen, pc + op->y);
    } else {
        explore_from(p, seen, op->what == PATTERN_JUMP ? pc + op->x : pc + 1);
    }
}

DET_DEFINE_CLEANUP(struct pattern *, pattern_destroy)

int pattern_compile(const char *text, struct pattern **ret, struct det_err *err)
{
    bool seen[PATTERN_SIZE_MAX + 1] = {false};
    if (strlen(text) > PATTERN_TEXT_MAX)
        return det_fail(err, DET_EINVAL, "the pattern has %zu bytes; at most %d are taken",
                        strlen(text), PATTERN_TEXT_MAX);
    det_cleanup(pattern_destroyp) struct pattern *p = det_zalloc(sizeof *p);
    struct pattern_parser ps = {.text = text, .at = text, .p = p, .err = err};
    int rc = parse_alternatives(&ps);
    if (rc == 0 && *ps.at)
        rc = pattern_wrong(&ps, "a ) without its (");
    if (rc < 0)
        return rc;
    vec_push(&p->code, (struct pattern_op){.what = PATTERN_FOUND});
    explore_from(p, seen, 0);
    *ret = det_take(p);
    return 0;
}
