/* What a terminal would obey, taken out of what others wrote: names, metrics and log lines come
 * from anybody who may report to the master. Colours stay. */
#ifndef CLI_PLAIN_H
#define CLI_PLAIN_H

#include "json.h"

/* text (UTF-8) without control characters but tab, newline, carriage return and the sequences that
 * set colours (ESC [ digits and ; m). Caller frees; NULL: it has none, and stays as it is. */
char *plain_text(const char *text);
/* before, plain text and a newline on standard error: the text may quote what somebody else wrote.
 */
void plain_say(const char *before, const char *text);
/* The length of a sequence that sets colours at s; 0: there is none. */
size_t plain_colour(const char *s);
/* The same for every string and key of j. j is taken; a reference is returned. */
json_t *plain_json(json_t *j);

#endif
