#include "notify.h"

#include "mem.h"
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ASKED "NOTIFY_SOCKET"

bool notify_is_asked(void)
{
    const char *path = getenv(ASKED);
    return path && *path;
}

void notify_manager(const char *state)
{
    const char *path = getenv(ASKED);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = path ? strlen(path) : 0;
    if (n < 2 || n >= sizeof to.sun_path || (*path != '/' && *path != '@'))
        return;
    memcpy(to.sun_path, path, n);
    if (*path == '@') /* an abstract socket */
        to.sun_path[0] = '\0';
    det_cleanup(det_closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) /* a manager that is gone wants no word */
        (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to,
                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
}
