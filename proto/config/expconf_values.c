/* The values of the configuration that have more than one spelling, and the generated name. */
#include "expconf_schema.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

bool expconf_whole(const json_t *v, int64_t *ret)
{
    if (json_is_integer(v)) {
        *ret = json_integer_value(v);
        return true;
    }
    double d = json_real_value(v); /* 0.0 unless real */
    if (!json_is_real(v) || d != floor(d) || fabs(d) > 0x1p53)
        return false;
    *ret = (int64_t)d;
    return true;
}

/* The power of 1024 that " GiB", "g", "kb" or "" stand for; -1 if it is no unit. */
static int unit_power(const char *s)
{
    static const char letters[] = "kmgtp";
    int power = 0;
    s += *s == ' ';
    const char *letter = *s ? strchr(letters, tolower((unsigned char)*s)) : NULL;
    if (letter) {
        power = (int)(letter - letters) + 1;
        s++;
        s += tolower((unsigned char)*s) == 'i';
    }
    s += tolower((unsigned char)*s) == 'b';
    return *s ? -1 : power;
}

static bool size_of_text(const char *s, int64_t *ret)
{
    char *end;
    if (!isdigit((unsigned char)*s))
        return false;
    size_t digits = strspn(s, "0123456789.");
    det_cleanup(freep) char *number = det_strndup(s, digits);
    double v = strtod(number, &end);
    int power = unit_power(s + digits);
    if (*end || power < 0)
        return false;
    v = floor(ldexp(v, 10 * power));
    if (v > 0x1p53)
        return false;
    *ret = (int64_t)v;
    return true;
}

bool expconf_size(const json_t *v, int64_t *ret)
{
    if (json_is_string(v))
        return size_of_text(json_string_value(v), ret);
    return expconf_whole(v, ret) && *ret >= 0 && *ret <= LENGTH_MAX;
}

json_t *expconf_device(const char *text)
{
    size_t host = strcspn(text, ":");
    if (*text != '/' || text[host] != ':')
        return NULL;
    const char *container = text + host + 1;
    size_t n = strcspn(container, ":");
    const char *mode = container[n] ? container + n + 1 : "mrw";
    if (*container != '/' || !*mode || strspn(mode, "rwm") != strlen(mode))
        return NULL;
    return json_make("{s:s%,s:s%,s:s}", "host_path", text, host, "container_path", container, n,
                     "mode", mode);
}

static const char *const adverbs[] = {
    "barely", "boldly", "brightly", "calmly", "clearly", "daily",   "deeply",  "early",
    "easily", "evenly", "fairly",   "firmly", "freely",  "gently",  "gladly",  "happily",
    "highly", "kindly", "largely",  "lately", "lightly", "loudly",  "mainly",  "mildly",
    "neatly", "newly",  "nicely",   "openly", "partly",  "plainly", "quickly", "quietly",
    "rarely", "really", "richly",   "safely", "sharply", "simply",  "slowly",  "smoothly",
    "softly", "surely", "swiftly",  "truly",  "warmly",  "widely",  "wisely",  "wholly",
};
static const char *const adjectives[] = {
    "able",   "amber",  "ample",  "brave", "brief",   "bright", "brisk", "calm",
    "clever", "cosy",   "crisp",  "deft",  "eager",   "early",  "fair",  "fancy",
    "fine",   "fresh",  "gentle", "glad",  "golden",  "grand",  "green", "happy",
    "hardy",  "humble", "jolly",  "keen",  "kind",    "lively", "lucky", "mellow",
    "merry",  "mighty", "neat",   "noble", "patient", "proud",  "quick", "quiet",
    "ready",  "rosy",   "shiny",  "smart", "sturdy",  "sunny",  "tidy",  "witty",
};
static const char *const animals[] = {
    "badger", "beaver",  "bison",  "bobcat", "camel",  "civet",   "condor", "crane",
    "dingo",  "dolphin", "eagle",  "egret",  "falcon", "ferret",  "finch",  "gecko",
    "gibbon", "heron",   "hornet", "ibex",   "jackal", "kestrel", "koala",  "lemur",
    "lizard", "lynx",    "marmot", "marten", "mole",   "moose",   "newt",   "ocelot",
    "osprey", "otter",   "panda",  "pika",   "puffin", "quail",   "rabbit", "raven",
    "robin",  "salmon",  "stork",  "tapir",  "toucan", "walrus",  "wombat", "zebra",
};

char *expconf_three_words(uint64_t seed)
{
    const char *a = adverbs[seed % DET_ARRAY_LEN(adverbs)];
    seed /= DET_ARRAY_LEN(adverbs);
    const char *b = adjectives[seed % DET_ARRAY_LEN(adjectives)];
    seed /= DET_ARRAY_LEN(adjectives);
    return det_asprintf("%s-%s-%s", a, b, animals[seed % DET_ARRAY_LEN(animals)]);
}
