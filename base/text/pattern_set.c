/* The sets of characters that a pattern names: escapes and brackets. */
#include "pattern_code.h"

#include <ctype.h>
#include <stdlib.h>

int pattern_wrong(const struct pattern_parser *ps, const char *what)
{
    return det_fail(ps->err, DET_EINVAL, "%s, at character %zu of \"%s\"", what,
                    (size_t)(ps->at - ps->text) + 1, ps->text);
}

void pattern_add_char(const struct pattern_parser *ps, struct pattern_set *set, unsigned char c)
{
    pattern_set_add(set, c);
    if (ps->any_case && c < 128 && isalpha(c))
        pattern_set_add(set, c ^ 32);
}

void pattern_set_invert(struct pattern_set *set)
{
    for (size_t i = 0; i < 4; i++)
        set->bits[i] = ~set->bits[i];
}

static const struct {
    const char *name;
    int (*has)(int c);
} classes[] = {
    {"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank}, {"cntrl", iscntrl},
    {"digit", isdigit}, {"graph", isgraph}, {"lower", islower}, {"print", isprint},
    {"punct", ispunct}, {"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit},
};

bool pattern_is_class(char c)
{
    return c && strchr("dDwWsS", c);
}

void pattern_add_class(struct pattern_set *set, char letter)
{
    struct pattern_set in = {0};
    for (int c = 0; c < 128; c++) {
        bool has = letter == 'd' || letter == 'D'   ? isdigit(c)
                   : letter == 'w' || letter == 'W' ? isalnum(c) || c == '_'
                                                    : c != '\v' && isspace(c);
        if (has)
            pattern_set_add(&in, (unsigned char)c);
    }
    if (isupper((unsigned char)letter))
        pattern_set_invert(&in);
    for (size_t i = 0; i < 4; i++)
        set->bits[i] |= in.bits[i];
}

/* The two digits of \xHH; at is behind the x. */
static int parse_hex(struct pattern_parser *ps, int *ret)
{
    char digits[3] = {ps->at[0], ps->at[0] ? ps->at[1] : '\0', '\0'};
    if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1]))
        return pattern_wrong(ps, "\\x takes two hexadecimal digits");
    *ret = (int)strtol(digits, NULL, 16);
    ps->at += 2;
    return 0;
}

int pattern_escaped(struct pattern_parser *ps, int *ret)
{
    static const char letters[] = "ntrfva", chars[] = "\n\t\r\f\v\a";
    char c = *ps->at;
    const char *known = c ? strchr(letters, c) : NULL;
    if (!c)
        return pattern_wrong(ps, "a backslash with nothing after it");
    if (isdigit((unsigned char)c))
        return pattern_wrong(ps, "back references are not available");
    if (!known && c != 'x' && isalpha((unsigned char)c))
        return pattern_wrong(ps, "an escape that is not known");
    ps->at++;
    if (c == 'x')
        return parse_hex(ps, ret);
    *ret = known ? chars[known - letters] : (unsigned char)c;
    return 0;
}

static int named_class(struct pattern_parser *ps, struct pattern_set *set)
{
    const char *name = ps->at + 2, *end = strstr(name, ":]");
    for (size_t i = 0; end && i < sizeof classes / sizeof classes[0]; i++) {
        if (strlen(classes[i].name) != (size_t)(end - name) ||
            strncmp(classes[i].name, name, (size_t)(end - name)) != 0)
            continue;
        for (int c = 0; c < 128; c++)
            if (classes[i].has(c))
                pattern_add_char(ps, set, (unsigned char)c);
        ps->at = end + 2;
        return 0;
    }
    return pattern_wrong(
        ps, "a class that is not known: [:alpha:], [:digit:], [:space:] and so on are");
}

static int one_of_set(struct pattern_parser *ps, int *ret)
{
    unsigned char c = (unsigned char)*ps->at;
    if (c == '\0')
        return pattern_wrong(ps, "a [ that is not closed");
    if (c >= 128)
        return pattern_wrong(ps, "in [..] only ASCII characters are available");
    ps->at++;
    *ret = c;
    return c == '\\' ? pattern_escaped(ps, ret) : 0;
}

/* One class, character or range. */
static int set_item(struct pattern_parser *ps, struct pattern_set *set)
{
    int from, to;
    if (ps->at[0] == '[' && ps->at[1] == ':')
        return named_class(ps, set);
    if (ps->at[0] == '\\' && pattern_is_class(ps->at[1])) {
        pattern_add_class(set, ps->at[1]);
        ps->at += 2;
        return 0;
    }
    int rc = one_of_set(ps, &from);
    to = from;
    if (rc == 0 && ps->at[0] == '-' && ps->at[1] && ps->at[1] != ']') {
        ps->at++;
        rc = one_of_set(ps, &to);
    }
    if (rc == 0 && to < from)
        rc = pattern_wrong(ps, "a range that runs backwards");
    for (int c = from; rc == 0 && c <= to; c++)
        pattern_add_char(ps, set, (unsigned char)c);
    return rc;
}

int pattern_bracket(struct pattern_parser *ps, struct pattern_set *set)
{
    bool inverted = *ps->at == '^';
    ps->at += inverted;
    for (bool first = true; first || *ps->at != ']'; first = false) {
        int rc = set_item(ps, set);
        if (rc < 0)
            return rc;
    }
    ps->at++;
    if (inverted)
        pattern_set_invert(set);
    return 0;
}
