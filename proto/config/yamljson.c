#include "yamljson.h"

#include "mistakes.h"
#include "vec.h"
#include <yaml.h>
#include <string.h>

struct anchor {
    char *name;
    json_t *value; /* owned */
    size_t nodes;
};

struct reader {
    yaml_parser_t parser;
    size_t nodes;
    VEC(struct anchor) anchors;
    json_t *lines;   /* NULL: nobody asks */
    struct buf path; /* of the node at hand, while lines are noted */
    struct det_err *err;
};

static int read_node(struct reader *r, const yaml_event_t *e, int depth, json_t **ret);

static int fail_at(struct reader *r, int code, const yaml_mark_t *at, const char *what,
                   const char *detail)
{
    struct buf text = BUF_INIT;
    buf_add_str(&text, what);
    if (detail) {
        buf_add_str(&text, " \"");
        mistakes_quote(&text, detail, 60);
        buf_add_ch(&text, '"');
    }
    det_fail(r->err, code, "YAML: line %zu, column %zu: %s", at->line + 1, at->column + 1,
             buf_str(&text));
    buf_finish(&text);
    return code;
}

static int next_event(struct reader *r, yaml_event_t *ret)
{
    if (yaml_parser_parse(&r->parser, ret))
        return 0;
    const yaml_parser_t *p = &r->parser;
    const yaml_mark_t *at =
        p->problem_mark.line || p->problem_mark.column ? &p->problem_mark : &p->mark;
    return fail_at(r, DET_EINVAL, at, p->problem ? p->problem : "not YAML", NULL);
}

static int count_nodes(struct reader *r, size_t n, const yaml_mark_t *at)
{
    r->nodes += n;
    if (r->nodes <= YAMLJSON_NODES_MAX)
        return 0;
    return fail_at(r, DET_ETOOBIG, at, "too many values (aliases counted at every use)", NULL);
}

/* ---- scalars ---- */

/* Whether an explicit tag leaves the value to its text ("!!int 5") or makes it text ("!!str 5"). */
static int tag_says_text(struct reader *r, const yaml_event_t *e, bool *ret_text)
{
    static const char core[] = "tag:yaml.org,2002:";
    const char *tag = (const char *)e->data.scalar.tag;
    bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    *ret_text = !plain;
    if (!tag || strcmp(tag, "!") == 0) {
        *ret_text = !plain || tag;
        return 0;
    }
    if (strncmp(tag, core, sizeof core - 1) != 0)
        return fail_at(r, DET_EINVAL, &e->start_mark, "unknown tag", tag);
    const char *name = tag + sizeof core - 1;
    if (strcmp(name, "str") == 0) {
        *ret_text = true;
        return 0;
    }
    *ret_text = false;
    if (strcmp(name, "int") == 0 || strcmp(name, "float") == 0 || strcmp(name, "bool") == 0 ||
        strcmp(name, "null") == 0)
        return 0;
    return fail_at(r, DET_EINVAL, &e->start_mark, "unknown tag", tag);
}

static int read_scalar(struct reader *r, const yaml_event_t *e, json_t **ret)
{
    const char *s = (const char *)e->data.scalar.value;
    size_t n = e->data.scalar.length;
    bool text;
    int rc = tag_says_text(r, e, &text);
    if (rc < 0)
        return rc;
    if (memchr(s, '\0', n))
        return fail_at(r, DET_EINVAL, &e->start_mark, "text with a NUL character", NULL);
    *ret = text ? json_stringn(s, n) : yamljson_scalar(s, n);
    if (!*ret)
        return fail_at(r, DET_EINVAL, &e->start_mark, "number out of range:", s);
    return 0;
}

/* ---- anchors ---- */

/* Values are shared until the document is whole: a copy at every use would be work for nothing
 * where it turns out to be too large. */
static void anchor_add(struct reader *r, const yaml_char_t *name, json_t *value, size_t nodes)
{
    vec_push(&r->anchors, (struct anchor){.name = det_strdup((const char *)name),
                                          .value = json_incref(value),
                                          .nodes = nodes});
}

static int read_alias(struct reader *r, const yaml_event_t *e, json_t **ret)
{
    const char *name = (const char *)e->data.alias.anchor;
    for (size_t i = r->anchors.n; i-- > 0;) {
        struct anchor *a = &r->anchors.v[i]; /* the latest of equal names counts */
        if (strcmp(a->name, name) != 0)
            continue;
        int rc = count_nodes(r, a->nodes, &e->start_mark);
        if (rc == 0)
            *ret = json_incref(a->value);
        return rc;
    }
    return fail_at(r, DET_EINVAL, &e->start_mark, "no anchor of this name before it:", name);
}

/* ---- collections ---- */

/* Both do nothing unless lines are asked for. */
static size_t path_enter(struct reader *r, const char *key, size_t index, const yaml_mark_t *at)
{
    size_t before = r->path.len;
    if (!r->lines)
        return before;
    if (key)
        buf_addf(&r->path, "%s%s", before ? "." : "", key);
    else
        buf_addf(&r->path, "[%zu]", index);
    json_set(r->lines, buf_str(&r->path), json_integer((json_int_t)at->line + 1));
    return before;
}

static void path_leave(struct reader *r, size_t before)
{
    if (!r->lines)
        return;
    r->path.len = before;
    if (r->path.p)
        r->path.p[before] = '\0';
}

static int read_sequence(struct reader *r, int depth, json_t **ret)
{
    JSON_OWN list = json_array();
    for (;;) {
        det_cleanup(yaml_event_delete) yaml_event_t e = {0};
        json_t *v = NULL;
        int rc = next_event(r, &e);
        if (rc == 0 && e.type == YAML_SEQUENCE_END_EVENT) {
            *ret = det_take(list);
            return 0;
        }
        size_t before = path_enter(r, NULL, json_array_size(list), &e.start_mark);
        if (rc == 0)
            rc = read_node(r, &e, depth, &v);
        path_leave(r, before);
        if (rc < 0)
            return rc;
        json_array_append_new(list, v);
    }
}

static bool is_merge(const yaml_event_t *key)
{
    return key->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && key->data.scalar.length == 2 &&
           memcmp(key->data.scalar.value, "<<", 2) == 0;
}

/* `value` of a merge key joins the list of maps to merge. */
static int note_merge(struct reader *r, json_t *merges, json_t *value, const yaml_mark_t *at)
{
    size_t i;
    json_t *v;
    if (json_is_object(value)) {
        json_array_append(merges, value);
        return 0;
    }
    json_array_foreach(value, i, v)
    {
        if (!json_is_object(v))
            break;
        json_array_append(merges, v);
    }
    if (json_is_array(value) && i == json_array_size(value))
        return 0;
    return fail_at(r, DET_EINVAL, at, "<< needs a map or a list of maps", NULL);
}

/* Keys written out win, then the first map that has the key. */
static void apply_merges(json_t *map, const json_t *merges)
{
    size_t i;
    json_t *from, *v;
    const char *key;
    json_array_foreach(merges, i, from)
        json_object_foreach(from, key, v) if (!json_object_get(map, key))
            json_object_set(map, key, v);
}

static int check_key(struct reader *r, const json_t *map, const yaml_event_t *key)
{
    if (key->type != YAML_SCALAR_EVENT)
        return fail_at(r, DET_EINVAL, &key->start_mark, "a key must be plain text", NULL);
    const char *s = (const char *)key->data.scalar.value;
    if (memchr(s, '\0', key->data.scalar.length))
        return fail_at(r, DET_EINVAL, &key->start_mark, "text with a NUL character", NULL);
    if (!is_merge(key) && json_object_get(map, s))
        return fail_at(r, DET_EINVAL, &key->start_mark, "key given twice:", s);
    return 0;
}

static int read_pair(struct reader *r, const yaml_event_t *key, int depth, json_t *map,
                     json_t *merges)
{
    det_cleanup(yaml_event_delete) yaml_event_t e = {0};
    JSON_OWN v = NULL;
    int rc = check_key(r, map, key);
    if (rc == 0)
        rc = count_nodes(r, 1, &key->start_mark);
    if (rc == 0)
        rc = next_event(r, &e);
    if (rc < 0)
        return rc;
    const char *name = (const char *)key->data.scalar.value;
    size_t before = path_enter(r, name, 0, &key->start_mark);
    rc = read_node(r, &e, depth, &v);
    path_leave(r, before);
    if (rc < 0)
        return rc;
    if (is_merge(key))
        return note_merge(r, merges, v, &key->start_mark);
    if (key->data.scalar.anchor) {
        JSON_OWN text = json_string(name);
        anchor_add(r, key->data.scalar.anchor, text, 1);
    }
    json_set(map, name, det_take(v));
    return 0;
}

static int read_mapping(struct reader *r, int depth, json_t **ret)
{
    JSON_OWN map = json_object();
    JSON_OWN merges = json_array();
    for (;;) {
        det_cleanup(yaml_event_delete) yaml_event_t e = {0};
        int rc = next_event(r, &e);
        if (rc == 0 && e.type == YAML_MAPPING_END_EVENT)
            break;
        if (rc == 0)
            rc = read_pair(r, &e, depth, map, merges);
        if (rc < 0)
            return rc;
    }
    apply_merges(map, merges);
    *ret = det_take(map);
    return 0;
}

static int read_node(struct reader *r, const yaml_event_t *e, int depth, json_t **ret)
{
    const yaml_char_t *anchor = NULL;
    size_t before = r->nodes;
    int rc = count_nodes(r, 1, &e->start_mark);
    if (rc < 0)
        return rc;
    if (depth >= YAMLJSON_DEPTH_MAX)
        return fail_at(r, DET_ETOOBIG, &e->start_mark, "nested too deeply", NULL);
    switch ((int)e->type) {
    case YAML_ALIAS_EVENT: return read_alias(r, e, ret);
    case YAML_SCALAR_EVENT:
        anchor = e->data.scalar.anchor;
        rc = read_scalar(r, e, ret);
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = e->data.sequence_start.anchor;
        rc = read_sequence(r, depth + 1, ret);
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = e->data.mapping_start.anchor;
        rc = read_mapping(r, depth + 1, ret);
        break;
    default: return fail_at(r, DET_EINVAL, &e->start_mark, "a value is missing", NULL);
    }
    if (rc == 0 && anchor)
        anchor_add(r, anchor, *ret, r->nodes - before);
    return rc;
}

/* Reads events up to the document's first node, or the stream's end: then e is YAML_STREAM_END. */
static int first_node(struct reader *r, yaml_event_t *e)
{
    for (;;) {
        yaml_event_delete(e);
        int rc = next_event(r, e);
        if (rc < 0)
            return rc;
        if (e->type != YAML_STREAM_START_EVENT && e->type != YAML_DOCUMENT_START_EVENT)
            return 0;
    }
}

static int read_document(struct reader *r, json_t **ret)
{
    det_cleanup(yaml_event_delete) yaml_event_t e = {0};
    JSON_OWN value = NULL;
    int rc = first_node(r, &e);
    if (rc == 0)
        rc = e.type == YAML_STREAM_END_EVENT ? (value = json_null(), 0)
                                             : read_node(r, &e, 0, &value);
    while (rc == 0 && e.type != YAML_STREAM_END_EVENT) {
        yaml_event_delete(&e);
        rc = next_event(r, &e);
        if (rc == 0 && e.type == YAML_DOCUMENT_START_EVENT)
            rc = fail_at(r, DET_EINVAL, &e.start_mark, "a second document; one is expected", NULL);
    }
    if (rc == 0)
        *ret = r->anchors.n ? json_deep_copy(value) : det_take(value);
    return rc;
}

/* JSON's own reader first: libyaml refuses tabs and surrogate escapes, which JSON allows. */
static json_t *try_json(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && strchr(" \t\r\n", text[i]) && text[i])
        i++;
    return i < len && text[i] == '{' ? json_parse(text, len, NULL) : NULL;
}

static int parse_yaml(const char *text, size_t len, json_t *lines, json_t **ret_json,
                      struct det_err *err)
{
    struct reader r = {.err = err, .lines = lines};
    if (!yaml_parser_initialize(&r.parser))
        return det_fail(err, DET_ENOMEM, "YAML: no memory for the reader");
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    int rc = read_document(&r, ret_json);
    yaml_parser_delete(&r.parser);
    for (size_t i = 0; i < r.anchors.n; i++) {
        free(r.anchors.v[i].name);
        json_decref(r.anchors.v[i].value);
    }
    vec_free(&r.anchors);
    buf_finish(&r.path);
    return rc;
}

int yamljson_parse(const char *text, size_t len, json_t **ret_json, struct det_err *err)
{
    if ((*ret_json = try_json(text, len)))
        return 0;
    return parse_yaml(text, len, NULL, ret_json, err);
}

int yamljson_parse_lines(const char *text, size_t len, json_t **ret_json, json_t **ret_lines,
                         struct det_err *err)
{
    JSON_OWN lines = json_object();
    int rc = parse_yaml(text, len, lines, ret_json, err);
    *ret_lines = rc < 0 ? NULL : det_take(lines);
    return rc;
}
