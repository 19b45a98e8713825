/* det-master: options and what they ask for. */
#include "db.h"
#include "db_lives.h"
#include "doctor.h"
#include "log.h"
#include "logring.h"
#include "masterconf.h"
#include "mem.h"
#include "openfiles.h"
#include "serve.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LARGE_BYTES = 256 << 10 };

static int print_and_end(struct masterconf *conf)
{
    det_cleanup(freep) char *text = masterconf_text(conf);
    fputs(text, stdout);
    if (*text && text[strlen(text) - 1] != '\n')
        fputc('\n', stdout);
    masterconf_finish(conf);
    return 0;
}

static int choose_life(struct masterconf *conf)
{
    struct det_err err;
    bool is_led = false;
    int rc = db_migrate(conf->db, &err);
    if (rc == 0)
        rc = db_new_life(conf->db, &is_led, &err);
    masterconf_finish(conf);
    if (rc < 0) {
        fprintf(stderr, "det-master: %s\n", err.text);
        return 1;
    }
    printf(
        "the next master that leads begins a new life: it takes agents that served another copy of "
        "this database,\nand starts again what ran%s\n",
        is_led ? ". One leads now: end it and start it again" : "");
    return 0;
}

int main(int argc, char **argv)
{
    struct masterconf conf;
    struct det_err err;
    log_init("master", LOG_INFO);
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES); /* what is large goes back when it is freed */
    if (masterconf_init(&conf, argc, argv, environ, &err) < 0) {
        fprintf(stderr, "det-master: %s\n", err.text);
        return 2;
    }
    if (conf.verb == MASTERCONF_DOCTOR) {
        int status = doctor_run(&conf);
        masterconf_finish(&conf);
        return status;
    }
    if (conf.verb == MASTERCONF_NEW_LIFE)
        return choose_life(&conf);
    if (conf.verb != MASTERCONF_SERVE)
        return print_and_end(&conf);
    log_init("master", conf.log_level);
    log_set_format(conf.log_format);
    openfiles_raise();
    struct logring *ring = logring_create();
    log_set_sink(logring_add, ring);
    int status = serve(&conf, ring, &err);
    if (status < 0) {
        log_error("%s", err.text);
        return 1;
    }
    masterconf_finish(&conf);
    log_info("ended");
    log_set_sink(NULL, NULL);
    logring_destroy(ring);
    return status;
}
