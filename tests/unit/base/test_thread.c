/* Who is told of a signal: never a thread of ours; and who starts it is as before. */
#include "thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <semaphore.h>
#include <signal.h>

struct seen {
    sigset_t mask;
    sem_t done;
};

static void *look(void *arg)
{
    struct seen *s = arg;
    pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
    sem_post(&s->done);
    return s;
}

static void check_masks(const struct seen *s)
{
    sigset_t mine;
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    assert_true(sigismember(&s->mask, SIGTERM) && sigismember(&s->mask, SIGCHLD));
    assert_false(sigismember(&mine, SIGTERM));
    assert_true(sigismember(&mine, SIGUSR1)); /* as the test began */
}

static void test_masks(void **state)
{
    struct seen s;
    sigset_t one;
    pthread_t thread;
    void *ret;
    sem_init(&s.done, 0, 0);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &one, NULL);
    assert_int_equal(thread_start(&thread, NULL, look, &s), 0);
    assert_int_equal(pthread_join(thread, &ret), 0);
    assert_ptr_equal(ret, &s);
    check_masks(&s);
    sem_wait(&s.done);
    assert_int_equal(thread_start_detached(look, &s), 0);
    sem_wait(&s.done);
    check_masks(&s);
    sem_destroy(&s.done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_masks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
