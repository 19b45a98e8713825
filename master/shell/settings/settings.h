/*
 * The master's settings as one const table (settings_table.c): what they are called, what they may
 * be, their defaults, their options and variables, and the sentence that explains them. Everything
 * follows from it: checking master.yaml, the environment (DET_ and the path in capitals, "." as
 * "_"), the command line, --help, --print-config, --print-example, and where a value is kept.
 *
 * A path is dotted; "list[].key" is a key of every member of a list of maps. A map that some path
 * goes through may hold only what the table names.
 *
 * The files of this folder:
 *   settings.c: reading the table's sources
 *   settings_table.c: the table
 *   settings_value.c: one value: checked, described, kept
 *   settings_example.c: --print-example
 *   masterconf.c: the settings as the master uses them
 *   masterpools.c: pools and quotas as the core takes them
 *   transport.c: TLS
 *   doctor.c: `det-master doctor`
 */
#ifndef SHELL_SETTINGS_H
#define SHELL_SETTINGS_H

#include "buf.h"
#include "det/err.h"
#include "json.h"
#include "mistakes.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum setting_type {
    SETTING_TEXT,
    SETTING_INT,     /* min..max; both 0: 0..INT32_MAX */
    SETTING_SECONDS, /* whole seconds, min..max likewise; kept as milliseconds */
    SETTING_NUM,     /* above 0 */
    SETTING_BOOL,
    SETTING_ENUM, /* one of choices; kept as its index */
    SETTING_MAP,  /* a map that somebody else checks */
};

struct setting {
    const char *path;
    enum setting_type type;
    const char *fallback; /* the default as YAML; NULL: null, which means not set */
    const char *help;     /* a sentence without its full stop */
    int64_t min, max;     /* of a text: max bytes; 0: no limit */
    const char *choices;  /* SETTING_ENUM: words separated by blanks */
    const char *option;   /* "stall-timeout"; NULL: only file and environment */
    char short_name;
    const char *arg;     /* of the option, in --help */
    const char *example; /* a value to show where there is no default */
    bool secret;         /* shown as asterisks */
    size_t at, bytes;    /* where in the bound struct; at 0: nowhere */
};

/* A table and where its values are kept; offset 0 of that struct must be something else. */
struct settings {
    const struct setting *v;
    size_t n;
};
extern const struct settings settings_master;

/* Whether v may be the value of s; null may not. */
bool setting_fits(const struct setting *s, const json_t *v);
/* Appends what s takes: "a whole number from 0 to 65535". */
void setting_describe(const struct setting *s, struct buf *out);
/* Which of the choices a word is, capitals alike; -1 if none. */
int setting_choice(const char *choices, const char *word);

/* Checks a document (borrowed) as read from a file; lines (NULL ok) says where its keys stand. A
 * document of null is an empty one. */
void settings_check(const struct settings *t, const json_t *raw, const json_t *lines,
                    struct mistakes *errs);
/* Sets what `text` says at the path of s in raw, or adds a mistake under the name `label`. */
void settings_set_text(const struct setting *s, json_t *raw, const char *label, const char *text,
                       struct mistakes *errs);
/* From the environment (as environ has it): DET_PORT=80 sets port. */
void settings_set_env(const struct settings *t, json_t *raw, char **env, struct mistakes *errs);
/* The name of the variable of s; caller frees. NULL for a key of a list. */
char *settings_env_name(const struct setting *s);

/* The whole document in the table's order, defaults filled in. New reference. */
json_t *settings_fill(const struct settings *t, const json_t *raw);
/* tree (filled) with secrets masked. New reference. */
json_t *settings_mask(const struct settings *t, const json_t *tree);
/* Copies the values of a filled tree into the struct. Texts are fresh copies. */
void settings_bind(const struct settings *t, const json_t *tree, void *to);
/* Frees the texts. */
void settings_unbind(const struct settings *t, void *from);

/* A commented master.yaml with every setting and its default. */
void settings_example(const struct settings *t, struct buf *out);

#endif
