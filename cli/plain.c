#include "plain.h"

#include <stdio.h>
#include <string.h>

size_t plain_colour(const char *s)
{
    if (s[0] != '\033' || s[1] != '[')
        return 0;
    size_t n = 2 + strspn(s + 2, "0123456789;");
    return s[n] == 'm' ? n + 1 : 0;
}

/* The length of the control character at s, 0: it is none. C1 is U+0080 to U+009F. */
static size_t control_length(const char *s)
{
    unsigned char c = (unsigned char)s[0], next = c ? (unsigned char)s[1] : 0;
    if (c == 0xc2 && next >= 0x80 && next < 0xa0)
        return 2;
    return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
}

static bool is_plain(const char *s)
{
    for (size_t n; *s; s += n ? n : 1)
        if ((n = plain_colour(s)) == 0 && control_length(s))
            return false;
    return true;
}

char *plain_text(const char *s)
{
    struct buf out = BUF_INIT;
    if (is_plain(s))
        return NULL;
    while (*s) {
        size_t keep = plain_colour(s), drop = keep ? 0 : control_length(s);
        if (drop)
            buf_add_str(&out, "\xef\xbf\xbd"); /* U+FFFD */
        else
            buf_add(&out, s, keep ? keep : 1);
        s += drop ? drop : keep ? keep : 1;
    }
    buf_add(&out, "", 0);
    return buf_steal(&out);
}

void plain_say(const char *before, const char *text)
{
    char *plain det_cleanup(freep) = plain_text(text);
    fprintf(stderr, "%s%s\n", before, plain ? plain : text);
}

static json_t *plain_string(json_t *j)
{
    char *text det_cleanup(freep) = plain_text(json_string_value(j));
    if (!text)
        return j;
    json_decref(j);
    return json_string(text);
}

static json_t *plain_object(json_t *j)
{
    const char *key;
    json_t *v, *all = json_object();
    json_object_foreach(j, key, v)
    {
        char *name det_cleanup(freep) = plain_text(key);
        json_set(all, name ? name : key, plain_json(json_incref(v)));
    }
    json_decref(j);
    return all;
}

json_t *plain_json(json_t *j)
{
    if (json_is_string(j))
        return plain_string(j);
    if (json_is_object(j))
        return plain_object(j);
    for (size_t i = 0; i < json_array_size(j); i++)
        json_array_set_new(j, i, plain_json(json_incref(json_array_get(j, i))));
    return j;
}
