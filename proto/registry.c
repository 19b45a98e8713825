#include "registry.h"

#include <string.h>

static bool has_control(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 127)
            return true;
    return false;
}

int registry_check_name(const char *name, struct det_err *err)
{
    size_t n = strlen(name);
    if (n == 0 || n > REGISTRY_NAME_MAX || name[strspn(name, " \t\r\n")] == '\0')
        return det_fail(err, DET_EINVAL, "name: 1 to %d bytes, not blank", REGISTRY_NAME_MAX);
    if (strchr(name, '/') || has_control(name))
        return det_fail(err, DET_EINVAL, "name: without '/' and control characters");
    if (name[0] == ' ' || name[n - 1] == ' ' || strstr(name, "  "))
        return det_fail(err, DET_EINVAL,
                        "name: no space at its beginning or end, and none beside another");
    if (name[strspn(name, "0123456789")] == '\0')
        return det_fail(err, DET_EINVAL,
                        "name: not only digits, which would be taken for a model's id");
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return det_fail(err, DET_EINVAL,
                        "name: not \"%s\", which would be taken out of the model's path", name);
    return 0;
}

int registry_check_text(const char *field, const char *text, size_t max, struct det_err *err)
{
    size_t n = text ? strlen(text) : 0;
    if (n > max)
        return det_fail(err, DET_EINVAL, "%s: %zu bytes; at most %zu", field, n, max);
    return 0;
}

int registry_metadata(const json_t *metadata, char **ret, struct det_err *err)
{
    det_cleanup(freep) char *text = json_text(metadata);
    size_t n = strlen(text);
    if (n > REGISTRY_TEXT_MAX)
        return det_fail(err, DET_EINVAL, "metadata: %zu bytes as JSON; at most %d", n,
                        REGISTRY_TEXT_MAX);
    *ret = det_strdup(text);
    return 0;
}

static bool is_in(const json_t *list, const char *label)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_array_get(list, i)), label) == 0)
            return true;
    return false;
}

int registry_labels(const json_t *list, json_t *out, struct det_err *err)
{
    if (json_array_size(list) > REGISTRY_LABELS_MAX)
        return det_fail(err, DET_EINVAL, "labels: at most %d", REGISTRY_LABELS_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *label = json_string_value(json_array_get(list, i));
        if (!label || strlen(label) > REGISTRY_LABEL_MAX || !label[strspn(label, " \t\r\n")])
            return det_fail(err, DET_EINVAL,
                            "labels[%zu]: expected a string of 1 to %d bytes, not "
                            "blank",
                            i, REGISTRY_LABEL_MAX);
        if (!is_in(out, label))
            json_array_append_new(out, json_string(label));
    }
    return 0;
}
