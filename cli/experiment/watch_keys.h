/* Keys that a person types while a screen is shown. One screen a process. */
#ifndef CLI_WATCH_KEYS_H
#define CLI_WATCH_KEYS_H

#include <stdbool.h>
#include <stdint.h>

/* From here on keys come one by one and are not shown; a signal that ends or stops the program
 * gives the terminal back first. false: standard input is no terminal of ours, nothing comes. */
bool watch_keys_begin(void);
/* The terminal as it was. */
void watch_keys_end(void);
/* After ms, or sooner with true: q was typed, or the input ended. */
bool watch_keys_wait(int64_t ms);

#endif
