/*
 * Who talks to which master: finds the URL, the user and a token (given, kept from before, or by
 * logging in), and makes the calls. Tokens are kept in auth.json of the configuration directory,
 * mode 0600, in the form Determined's own client keeps them.
 */
#include "cli.h"
#include "plain.h"

#include "authfile.h"
#include "client.h"
#include "fsx.h"
#include "hash.h"
#include "remedy.h"
#include "trust.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

struct session {
    struct client *client;
    char *user;      /* who the token is of; "" when it was given by DET_USER_TOKEN */
    bool from_login; /* the token is fresh: a 401 is final */
};

#define SALT "GubPEmmotfiK9TMD6Zdw" /* the API's, the same for everybody */

void session_hash_password(const char *password, char *out)
{
    out[0] = '\0';
    if (!password[0])
        return;
    char *salted det_cleanup(freep) = det_asprintf("%s%s", SALT, password);
    hash_bytes(HASH_SHA512, salted, strlen(salted), out);
}

char *session_ask_password(const char *prompt)
{
    struct termios old, quiet;
    bool terminal = tcgetattr(STDIN_FILENO, &old) == 0;
    if (terminal) {
        quiet = old;
        quiet.c_lflag &= ~(tcflag_t)ECHO;
        fputs(prompt, stderr);
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
    }
    char line[1024] = "";
    if (!fgets(line, sizeof line, stdin))
        line[0] = '\0';
    if (terminal) {
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &old);
        fputc('\n', stderr);
    }
    line[strcspn(line, "\r\n")] = '\0';
    return det_strdup(line);
}

static const char *first_env(const char *a, const char *b, const char *fallback)
{
    const char *v = getenv(a);
    if (!v || !*v)
        v = getenv(b);
    return v && *v ? v : fallback;
}

static const char *given_env(const char *name)
{
    return first_env(name, name, NULL);
}

int session_open(struct cli *c, struct det_err *err)
{
    if (c->s)
        return 0;
    struct client_options o = {
        .url = c->master ? c->master : first_env("DET_MASTER", "DET_MASTER_ADDR", "localhost:8080"),
        .ca_file = given_env("DET_MASTER_CERT_FILE"),
        .cert_name = getenv("DET_MASTER_CERT_NAME"),
        .user_agent = "det-cli/" DET_VERSION,
        .timeout_ms = 300 * 1000,
        .retries = 5,
        .retry_ms = 3000,
    };
    c->s = det_zalloc(sizeof *c->s);
    int rc = trust_open(&o, c->fingerprint, &c->s->client, err);
    if (rc == 0)
        c->master = client_url(c->s->client);
    return rc;
}

void session_destroy(struct session *s)
{
    if (!s)
        return;
    client_destroy(s->client);
    free(s->user);
    free(s);
}

static int request_login(struct cli *c, const char *user, const char *password, struct det_err *err)
{
    char hashed[HASH_HEX_MAX];
    JSON_OWN answer = NULL;
    session_hash_password(password, hashed);
    JSON_OWN body =
        json_make("{s:s, s:s, s:b}", "username", user, "password", hashed, "isHashed", 1);
    client_set_token(c->s->client, CLIENT_TOKEN_NONE, NULL);
    int rc = client_json(c->s->client, "POST", "/api/v1/auth/login", body, &answer, err);
    if (rc < 0)
        return det_wrap(err, rc, "log in to %s as %s", c->master, user);
    const char *token = json_str(answer, "token", "");
    client_set_token(c->s->client, CLIENT_TOKEN_USER, token);
    free(c->s->user);
    c->s->user = det_strdup(user);
    c->s->from_login = true;
    return authfile_put(c->master, user, token, err);
}

int session_login(struct cli *c, const char *user, const char *password, struct det_err *err)
{
    int rc = session_open(c, err);
    return rc < 0 ? rc : request_login(c, user, password, err);
}

/* From DET_PASS, the file DET_PASS_FILE, or the terminal. NULL with *err set when there is none. */
static char *find_password(const char *user, struct det_err *err)
{
    const char *given = getenv("DET_PASS"), *file = getenv("DET_PASS_FILE");
    if (given)
        return det_strdup(given);
    if (file && *file) {
        struct buf text = BUF_INIT;
        if (fsx_read_file(AT_FDCWD, file, 4096, &text, err) < 0) {
            det_wrap(err, DET_EAUTH, "DET_PASS_FILE");
            buf_finish(&text);
            return NULL;
        }
        char *password = det_strndup(buf_str(&text), strcspn(buf_str(&text), "\r\n"));
        buf_finish(&text);
        return password;
    }
    if (!isatty(STDIN_FILENO)) {
        det_fail(err, DET_EAUTH,
                 "no password for %s: run  det user login %s, or set DET_PASS or DET_PASS_FILE",
                 user, user);
        return NULL;
    }
    char *prompt det_cleanup(freep) = det_asprintf("Password for %s: ", user);
    return session_ask_password(prompt);
}

static int login_as_needed(struct cli *c, const char *user, struct det_err *err)
{
    char *password det_cleanup(freep) = find_password(user, err);
    return password ? request_login(c, user, password, err) : DET_EAUTH;
}

/* A token for the calls: DET_USER_TOKEN, else one kept for this master and user, else a login. */
static int choose_token(struct cli *c, struct det_err *err)
{
    int rc = session_open(c, err);
    if (rc < 0 || c->s->user)
        return rc;
    const char *given = getenv("DET_USER_TOKEN");
    if (given && *given) {
        client_set_token(c->s->client, CLIENT_TOKEN_USER, given);
        c->s->user = det_strdup("");
        c->s->from_login = true;
        return 0;
    }
    char *active det_cleanup(freep) =
        c->user ? det_strdup(c->user) : authfile_active_user(c->master);
    const char *user = active ? active : "determined";
    char *token det_cleanup(freep) = authfile_get(c->master, user);
    if (!token)
        return login_as_needed(c, user, err);
    client_set_token(c->s->client, CLIENT_TOKEN_USER, token);
    c->s->user = det_strdup(user);
    return 0;
}

/* 1 when the token that was kept is no longer good and a login replaced it: try the call again. */
static int renew_token(struct cli *c, int rc, struct det_err *err)
{
    if (rc != DET_EAUTH || c->s->from_login)
        return rc;
    char *user det_cleanup(freep) = det_strdup(c->s->user);
    rc = login_as_needed(c, user, err);
    return rc < 0 ? rc : 1;
}

/* A terminal obeys what it is sent; a file or a program gets every byte. */
static json_t *for_people(json_t *answer)
{
    bool shown = isatty(STDOUT_FILENO) || isatty(STDERR_FILENO);
    return answer && shown ? plain_json(answer) : answer;
}

static int add_remedy(int rc, const char *remedy, struct det_err *err)
{
    char *said det_cleanup(freep) = det_strdup(err->text);
    int sys = err->sys;
    if (!remedy)
        return rc;
    det_fail(err, rc, "%s; %s", said, remedy);
    err->sys = sys;
    return rc;
}

static const char *remedy_of_away(int rc, const struct det_err *err)
{
    return rc == DET_EUNAVAIL && err->sys == ECONNREFUSED
               ? "no det-master is there: -m URL or DET_MASTER names another"
               : NULL;
}

static int fail_call(const char *path, int rc, struct det_err *err)
{
    const char *remedy =
        rc == DET_ENOENT ? remedy_of_absent(path, err->text) : remedy_of_away(rc, err);
    return add_remedy(rc, remedy, err);
}

int cli_call(struct cli *c, const char *method, const char *path, const json_t *body,
             json_t **ret_answer, struct det_err *err)
{
    char *full det_cleanup(freep) = det_asprintf("/api/v1%s", path);
    int rc = choose_token(c, err);
    if (rc < 0)
        return add_remedy(rc, remedy_of_away(rc, err), err);
    for (int again = 1; again == 1;) {
        rc = client_json(c->s->client, method, full, body, ret_answer, err);
        if (rc == 0) {
            if (ret_answer)
                *ret_answer = for_people(*ret_answer);
            return 0;
        }
        again = renew_token(c, rc, err);
        rc = again;
    }
    return fail_call(path, rc, err);
}

int cli_get(struct cli *c, json_t **ret_answer, struct det_err *err, const char *fmt, ...)
{
    struct buf path = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vaddf(&path, fmt, ap);
    va_end(ap);
    int rc = cli_call(c, "GET", buf_str(&path), NULL, ret_answer, err);
    buf_finish(&path);
    return rc;
}

char *cli_escaped(const char *text)
{
    struct buf out = BUF_INIT;
    for (const char *p = text; *p; p++)
        if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~", *p))
            buf_add_ch(&out, *p);
        else
            buf_addf(&out, "%%%02X", (unsigned char)*p);
    return buf_steal(&out);
}

int cli_get_open(struct cli *c, const char *path, json_t **ret_answer, struct det_err *err)
{
    int rc = session_open(c, err);
    if (rc == 0)
        rc = client_json(c->s->client, "GET", path, NULL, ret_answer, err);
    if (rc == 0)
        *ret_answer = for_people(*ret_answer);
    return rc;
}

struct lines {
    void (*opened)(void *arg); /* NULL: nobody asks */
    int (*fn)(void *arg, json_t *result);
    void *arg;
};

static void on_open(void *arg)
{
    struct lines *l = arg;
    if (l->opened)
        l->opened(l->arg);
}

static int on_line(void *arg, const char *line, size_t len, struct det_err *err)
{
    struct lines *l = arg;
    if (len == 0)
        return 0;
    JSON_OWN j = for_people(json_parse(line, len, err));
    if (!j)
        return DET_ECORRUPT;
    const json_t *failed = json_obj(j, "error");
    if (failed)
        return det_fail(err, DET_EIO, "%s", json_str(failed, "message", "the stream broke"));
    return l->fn(l->arg, json_obj(j, "result"));
}

int cli_stream(struct cli *c, const char *path, int (*fn)(void *arg, json_t *result), void *arg,
               struct det_err *err)
{
    return cli_follow(c, path, NULL, fn, arg, err);
}

int cli_follow(struct cli *c, const char *path, void (*opened)(void *arg),
               int (*fn)(void *arg, json_t *result), void *arg, struct det_err *err)
{
    char *full det_cleanup(freep) = det_asprintf("/api/v1%s", path);
    struct lines l = {opened, fn, arg};
    struct client_req q = {.path = full, .on_open = on_open};
    int rc = choose_token(c, err);
    if (rc < 0)
        return add_remedy(rc, remedy_of_away(rc, err), err);
    for (int again = 1; again == 1;) {
        rc = client_stream(c->s->client, &q, 0, on_line, &l, err);
        if (rc == 0)
            return 0;
        again = renew_token(c, rc, err);
        rc = again;
    }
    return fail_call(path, rc, err);
}

int cli_download(struct cli *c, const char *path, const char *accept, size_t max, struct buf *out,
                 struct det_err *err)
{
    char *header det_cleanup(freep) = det_asprintf("Accept: %s", accept);
    const struct client_req q = {
        .path = path, .headers = (const char *const[]){header, NULL}, .answer_max = max};
    struct client_resp r = CLIENT_RESP_INIT;
    int rc = choose_token(c, err);
    if (rc < 0)
        return add_remedy(rc, remedy_of_away(rc, err), err);
    for (int again = 1; again == 1;) {
        rc = client_call(c->s->client, &q, &r, err);
        if (rc == 0)
            break;
        again = renew_token(c, rc, err);
        rc = again;
    }
    buf_finish(out);
    *out = r.body;
    return rc;
}

int session_logout(struct cli *c, struct det_err *err)
{
    int rc = cli_call(c, "POST", "/auth/logout", NULL, NULL, err);
    if (rc < 0 || !*c->s->user)
        return rc;
    return authfile_put(c->master, c->s->user, NULL, err);
}
