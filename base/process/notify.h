/* Tells the service manager how a daemon is: systemd's protocol, a datagram to $NOTIFY_SOCKET. */
#ifndef BASE_NOTIFY_H
#define BASE_NOTIFY_H

#include <stdbool.h>

/* state: "READY=1", "STOPPING=1", "STATUS=words", several separated by newlines. Does nothing when
 * nobody asked to be told. */
void notify_manager(const char *state);
bool notify_is_asked(void); /* somebody asked to be told */

#endif
