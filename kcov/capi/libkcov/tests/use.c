/* Uses each function of libkcov, with good and with bad arguments. */
#define _POSIX_C_SOURCE 200809L /* fileno */
#include "../libkcov.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, kcov_last_message()); \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

/* The last call failed with this kind, and its sentence has this word. */
#define FAILED(kind, word) CHECK(kcov_last_failure() == (kind) && strstr(kcov_last_message(), (word)))

static const struct kcov_range text = {0x1000, 0x2000};

static void maps(const char *path) {
    uint64_t signals[] = {0x1004, 0x1008, 0x1004, 0x9000}, out[4];
    uint64_t unrecorded;
    struct kcov_range reversed = {2, 1};
    struct kcov_novelty *map = kcov_novelty_new(&text, 1, 0), *loaded;
    CHECK(map && kcov_novelty_has_new(map, signals, 4) == 1);
    CHECK(kcov_novelty_merge(map, signals, 4, out, 1, &unrecorded) == 2 && out[0] == 0x1004);
    CHECK(unrecorded == 1);
    CHECK(kcov_novelty_has_new(map, signals, 3) == 0 && kcov_novelty_has_new(map, NULL, 0) == 0);
    CHECK(kcov_novelty_signals(map, NULL, 0) == 2);
    CHECK(kcov_novelty_save(map, path) == 0 && (loaded = kcov_novelty_load(path)) != NULL);
    CHECK(kcov_novelty_signals(loaded, out, 4) == 2 && out[0] == 0x1004 && out[1] == 0x1008);
    CHECK(kcov_novelty_clear(map) == 0 && kcov_novelty_signals(map, NULL, 0) == 0);

    CHECK(kcov_novelty_has_new(map, NULL, 1) == -1);
    FAILED(KCOV_FAILURE_INVALID_ARGUMENT, "kcov_novelty_has_new: `signals` is NULL");
    CHECK(kcov_novelty_has_new(map, (uint64_t *)((char *)signals + 1), 1) == -1);
    FAILED(KCOV_FAILURE_INVALID_ARGUMENT, "align it to 8 bytes");
    CHECK(kcov_novelty_has_new(map, signals, SIZE_MAX / 8) == -1);
    FAILED(KCOV_FAILURE_INVALID_ARGUMENT, "after the end of memory");
    CHECK(kcov_novelty_has_new(map, signals, SIZE_MAX / 8 + 2) == -1);
    CHECK(kcov_novelty_merge(map, signals, 1, NULL, 1, NULL) == -1);
    FAILED(KCOV_FAILURE_INVALID_ARGUMENT, "`out` is NULL");
    CHECK(kcov_novelty_has_new(NULL, signals, 1) == -1);
    FAILED(KCOV_FAILURE_INVALID_ARGUMENT, "the handle is NULL");
    CHECK(!kcov_novelty_new(&reversed, 1, 0));
    FAILED(KCOV_FAILURE_INVALID_ARGUMENT, "swap the bounds");
    CHECK(!kcov_novelty_load("/nowhere"));
    FAILED(KCOV_FAILURE_FILE, "/nowhere");
    CHECK(!kcov_novelty_load(NULL));
    CHECK(!kcov_novelty_share(-1, &text, 1, 0));
    CHECK(!kcov_novelty_share(0x7fffffff, &text, 1, 0));
    FAILED(KCOV_FAILURE_FILE, "share");
    kcov_novelty_free(map);
    kcov_novelty_free(loaded);
    kcov_novelty_free(NULL);
}

static void shared_maps(const char *path) {
    uint64_t signal = 0x1010;
    FILE *file = fopen(path, "w+");
    struct kcov_novelty *one, *two;
    CHECK(file && (one = kcov_novelty_share(fileno(file), &text, 1, KCOV_NOVELTY_FALLBACK)));
    CHECK((two = kcov_novelty_share(fileno(file), &text, 1, KCOV_NOVELTY_FALLBACK)));
    CHECK(!kcov_novelty_share(fileno(file), &text, 1, 1));
    FAILED(KCOV_FAILURE_INVALID_ARGUMENT, "other ranges or another fallback");
    fclose(file);
    CHECK(kcov_novelty_merge(one, &signal, 1, NULL, 0, NULL) == 1);
    CHECK(kcov_novelty_merge(two, &signal, 1, NULL, 0, NULL) == 0);
    CHECK(kcov_novelty_save(two, path) == 0);
    kcov_novelty_free(one);
    CHECK(kcov_novelty_signals(two, &signal, 1) == 1 && signal == 0x1010);
    CHECK(kcov_novelty_clear(two) == 0 && kcov_novelty_signals(two, NULL, 0) == 0);
    kcov_novelty_free(two);
    CHECK((one = kcov_novelty_load(path)) && kcov_novelty_signals(one, NULL, 0) == 1);
    kcov_novelty_free(one);
}

static void sets(void) {
    uint64_t signals[] = {7, 3, 7}, out[2];
    uint64_t unrecorded;
    struct kcov_set *set = kcov_set_new(1);
    CHECK(set && kcov_set_add(set, signals, 3, &unrecorded) == 1 && unrecorded == 1);
    CHECK(kcov_set_signals(set, out, 2) == 1 && out[0] == 7);
    CHECK(kcov_set_clear(set) == 0 && kcov_set_signals(set, NULL, 0) == 0);
    kcov_set_free(set);
    CHECK(!kcov_set_new(SIZE_MAX));
    FAILED(KCOV_FAILURE_INVALID_ARGUMENT, "pass at most");
}

static void dictionaries(void) {
    uint64_t words[] = {3, 0xcafe, 7, 0x1004, 3, 5, 5, 0x1008};
    struct kcov_token tokens[8];
    struct kcov_dictionary *dictionary = kcov_dictionary_new(1);
    CHECK(kcov_dictionary_add(dictionary, words, 2, KCOV_SKIP_EQUAL) == 1);
    CHECK(kcov_dictionary_tokens(dictionary, tokens, 8) == 2 && tokens[1].size == 2);
    CHECK(!memcmp(tokens[1].bytes, "\xca\xfe", 2));
    CHECK(kcov_dictionary_missed(dictionary) == 0);
    CHECK(kcov_dictionary_add(dictionary, words, 2, 0) == 0);
    CHECK(kcov_dictionary_missed(dictionary) == 1);
    CHECK(kcov_dictionary_add(dictionary, words, 2, 8) == -1);
    FAILED(KCOV_FAILURE_INVALID_ARGUMENT, "0x8");
    CHECK(kcov_dictionary_add(dictionary, words, SIZE_MAX / 16, 0) == -1);
    kcov_dictionary_free(dictionary);
}

static void kernels(void) {
    uint32_t modes;
    struct kcov_text found;
    struct kcov_session *session;
    struct kcov_records records;
    CHECK(kcov_probe("/dev/null", &modes) == -1);
    FAILED(KCOV_FAILURE_NOT_KCOV, "/dev/null: not a kcov device; check the path");
    CHECK(kcov_probe(NULL, NULL) == -1);
    CHECK(!kcov_session_open("/dev/null", 0));
    FAILED(KCOV_FAILURE_NOT_KCOV, "kcov_session_open: cannot open");
    CHECK(kcov_session_free(NULL) == -1);
    CHECK(kcov_text_read(NULL) == -1);
    CHECK(kcov_pc_run_time(0x1000, 64) - kcov_pc_link_time(0x1000, 64) == 64);
    CHECK(kcov_pc_call_site(0x1010) < 0x1010);
    if (!getenv("KCOV_VM_TARGET"))
        return;
    /* In a guest: its kernel has kcov. */
    CHECK(kcov_probe(NULL, &modes) == 0 && modes == (KCOV_RECORD_PC | KCOV_RECORD_CMP));
    CHECK(kcov_text_read(&found) == 0);
    CHECK((session = kcov_session_open(NULL, 4096)));
    CHECK(kcov_session_records(session, &records) == -1);
    FAILED(KCOV_FAILURE_NOT_ENABLED, "enable it first");
    CHECK(kcov_session_enable(session, 3) == -1);
    CHECK(kcov_session_enable(session, KCOV_RECORD_PC) == 0);
    CHECK(kcov_session_enable(session, KCOV_RECORD_PC) == -1);
    FAILED(KCOV_FAILURE_ALREADY_ENABLED, "disable it first");
    CHECK(kcov_session_reset(session) == 0);
    fclose(fopen("/dev/null", "r"));
    CHECK(kcov_session_disable(session) == 0 && kcov_session_records(session, &records) == 0);
    CHECK(records.records > 10 && records.words_per_record == 1);
    CHECK(records.completeness == KCOV_RECORDS_COMPLETE);
    CHECK(records.words[0] >= found.link_time.start && records.words[0] < found.link_time.end);
    CHECK(kcov_session_copy(session, NULL, 0) == (int64_t)records.records);
    CHECK(kcov_session_free(session) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    CHECK(kcov_last_failure() == KCOV_FAILURE_NONE && !*kcov_last_message());
    maps(argv[1]);
    shared_maps(argv[1]);
    sets();
    dictionaries();
    kernels();
    puts("ok");
    return 0;
}
