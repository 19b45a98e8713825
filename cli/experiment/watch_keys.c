#include "watch_keys.h"

#include "clk.h"
#include "mem.h"
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
static struct termios before, during; /* signal handlers see them */
static bool is_on, is_away;           /* is_away: in the background, when last looked at */

/* What another job has in the foreground is left alone: a read or a change would stop this one. */
static bool is_foreground(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* Of async-signal-safe calls only. What the signal does by itself follows. */
static void on_end(int sig)
{
    if (is_foreground())
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    signal(sig, SIG_DFL);
    raise(sig);
}

/* After Ctrl-Z and fg. */
static void on_return(int sig)
{
    (void)sig;
    signal(SIGTSTP, on_end);
    if (is_foreground())
        tcsetattr(STDIN_FILENO, TCSANOW, &during);
}

static void catch_signals(bool on)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(ends); i++)
        signal(ends[i], on ? on_end : SIG_DFL);
    signal(SIGCONT, on ? on_return : SIG_DFL);
}

bool watch_keys_begin(void)
{
    if (!isatty(STDIN_FILENO) || !is_foreground() || tcgetattr(STDIN_FILENO, &before) != 0)
        return false;
    during = before;
    during.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    during.c_cc[VMIN] = 1;
    during.c_cc[VTIME] = 0;
    catch_signals(true);
    is_on = tcsetattr(STDIN_FILENO, TCSANOW, &during) == 0;
    return is_on;
}

void watch_keys_end(void)
{
    if (!is_on)
        return;
    is_on = false;
    if (is_foreground())
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    catch_signals(false);
}

/* A job that runs already hears nothing of fg, after which the terminal is the shell's still. */
static bool is_heard(void)
{
    bool was_away = is_away;
    is_away = is_on && !is_foreground();
    if (is_on && was_away && !is_away)
        tcsetattr(STDIN_FILENO, TCSANOW, &during);
    return is_on && !is_away;
}

static bool is_leaving(void)
{
    char key = 'q';
    return read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q';
}

bool watch_keys_wait(int64_t ms)
{
    for (int64_t end = clk_mono_ms() + ms, left = ms; left > 0; left = end - clk_mono_ms()) {
        struct pollfd typed = {.fd = is_heard() ? STDIN_FILENO : -1, .events = POLLIN};
        if (poll(&typed, 1, (int)left) > 0 && is_heard() && is_leaving())
            return true;
    }
    return false;
}
