/* auth.json: the tokens kept between commands, by master and user:
 * {"version": 2, "masters": {URL: {"active_user": NAME, "tokens": {NAME: TOKEN}}}}. A file that
 * cannot be read or parsed counts as empty: the worst that follows is a login. */
#ifndef CLI_AUTHFILE_H
#define CLI_AUTHFILE_H

#include "det/err.h"

/* $XDG_CONFIG_HOME/determined or ~/.config/determined; NULL without a home. Caller frees. */
char *authfile_directory(void);
char *authfile_active_user(const char *master);           /* NULL: none; caller frees */
char *authfile_get(const char *master, const char *user); /* NULL: none; caller frees */
/* Keeps the token and makes the user the active one; token NULL forgets the user's. */
DET_MUST int authfile_put(const char *master, const char *user, const char *token,
                          struct det_err *err);

#endif
