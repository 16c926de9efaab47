/* A load client: keeps CONNECTIONS requests to one server under way and tells how long they took.

   Usage: client PORT MODE CONNECTIONS WARM_S SECONDS MODEL KEY [RATE [CHUNKS [EVERY_US]]]
   MODE plain: JSON answers. stream: streams of CHUNKS chunks, EVERY_US apart, whose delay is told by the time in each.
   hold: opens CONNECTIONS streams once, prints "open N" when each has had its first chunk, and ends when they do.
   RATE: requests a second at fixed moments, from which their time counts; 0 sends the next when one is answered.
   A connection that the server closes while it has nothing to do, or as it is asked after LONG_NS of that, is dialed
   again and counts as "redialed", not as an error: every HTTP client does so.
   Prints "begin" after the warm-up, "end" after SECONDS more, then one line of JSON; times in microseconds. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BUFFER 65536
#define LONG_NS 1000000000ull

typedef struct {
    int fd, idle, status, chunked, done, chunks;
    long left;          /* of the body, or of the chunk being read */
    int head;           /* whether the head of the answer was read */
    size_t len;
    uint64_t due, first, since; /* since: when it last had nothing to do, 0 before its first answer */
    int rested;         /* whether it had long nothing to do when it was last asked */
    char in[BUFFER];
} Connection;

typedef struct { uint32_t *all; size_t len, cap; } Times;

static Connection *connections;
static int count, epoll_fd, port, chunks = 64, holding, streaming;
static char request[4096];
static size_t request_len;
static uint64_t begin, end;
static Times whole, first, delay;
static long errors, answered, got_chunks, opened, short_streams, redialed;
static char error_text[160];

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void note(Times *t, uint64_t ns) {
    if (t->len == t->cap) t->all = realloc(t->all, (t->cap = t->cap ? 2 * t->cap : 65536) * sizeof *t->all);
    uint64_t us = ns / 1000;
    t->all[t->len++] = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void tell(const char *name, Times *t) {
    qsort(t->all, t->len, sizeof *t->all, ascending);
    for (int p = 50; p <= 99; p += 49)
        printf(",\"%s_p%d_us\":%u", name, p, t->len ? t->all[(t->len - 1) * (size_t)p / 100] : 0);
}

static void dial(Connection *c) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c->fd, (struct sockaddr *)&where, sizeof where)) { perror("client: connect"); exit(2); }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = (uint32_t)(c - connections)};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &e);
}

static void ask(Connection *c, uint64_t due) {
    c->idle = c->head = c->done = c->chunks = 0;
    c->len = 0;
    c->due = due;
    c->first = 0;
    c->rested = c->since && now_ns() - c->since > LONG_NS;
    /* of a connection that is closed already the next read tells */
    if (write(c->fd, request, request_len) != (ssize_t)request_len && errno != EPIPE && errno != ECONNRESET) errors++;
}

static void dial_again(Connection *c) {
    redialed++;
    close(c->fd);
    c->since = 0;
    dial(c);
    if (!c->idle) ask(c, c->due);
}

static void fail(Connection *c, const char *what) {
    if (!error_text[0]) snprintf(error_text, sizeof error_text, "%s", what);
    errors++;
    close(c->fd);
    c->since = 0;
    if (errors > 100000) exit(3);
    dial(c);
    if (!holding) ask(c, now_ns());
}

static void over(Connection *c, uint64_t now) {
    c->idle = 1;
    c->since = now;
    if (c->status != 200) { /* kept alive: goes on */
        errors++;
    } else {
        if (now >= begin && now < end) {
            answered++;
            note(&whole, now - c->due);
            if (streaming && c->first) note(&first, c->first - c->due);
        }
        if (streaming && c->chunks != chunks) short_streams++;
    }
}

/* Read the times that the back end wrote into its chunks. */
static void read_events(Connection *c, const char *data, size_t len, uint64_t now) {
    for (const char *at = data, *stop = data + len; (at = memchr(at, '@', (size_t)(stop - at))); at++) {
        uint64_t then = strtoull(at + 1, NULL, 10);
        if (then < 1000000000ull) continue;
        if (!c->chunks++) {
            c->first = now;
            if (holding && ++opened == count) { printf("open %ld\n", opened); fflush(stdout); }
        }
        if (now >= begin && now < end) { got_chunks++; note(&delay, now - then); }
    }
}

static int read_head(Connection *c) {
    c->in[c->len] = 0;
    char *stop = memmem(c->in, c->len, "\r\n\r\n", 4);
    if (!stop) return 0;
    *stop = 0;
    c->status = atoi(c->in + 9);
    char *length = strcasestr(c->in, "\r\ncontent-length:");
    c->chunked = length == NULL;
    c->left = length ? atol(length + 17) : 0;
    if (c->status != 200 && !error_text[0]) snprintf(error_text, sizeof error_text, "%.60s %.90s", c->in, stop + 4);
    size_t used = (size_t)(stop - c->in) + 4;
    memmove(c->in, c->in + used, c->len -= used);
    c->head = 1;
    return 1;
}

/* Take what is whole of the answer; returns 1 when it ended, -1 when it is no HTTP. */
static int advance(Connection *c, uint64_t now) {
    if (!c->head && !read_head(c)) return 0;
    if (!c->chunked) {
        size_t taken = c->len < (size_t)c->left ? c->len : (size_t)c->left;
        c->left -= (long)taken;
        memmove(c->in, c->in + taken, c->len -= taken);
        return c->left == 0;
    }
    size_t at = 0;
    int ended = 0;
    c->in[c->len] = 0;
    while (!ended) { /* whole chunks only */
        char *line = memmem(c->in + at, c->len - at, "\r\n", 2), *stop;
        if (!line) break;
        size_t size = strtoul(c->in + at, &stop, 16);
        if (stop == c->in + at) return -1;
        size_t start = (size_t)(line - c->in) + 2;
        if (start + size + 2 > c->len) break;
        if (size == 0) ended = 1;
        else if (streaming) {
            char kept = c->in[start + size];
            c->in[start + size] = 0;
            read_events(c, c->in + start, size, now);
            c->in[start + size] = kept;
        }
        at = start + size + 2;
    }
    memmove(c->in, c->in + at, c->len -= at);
    return ended;
}

static void readable(Connection *c, uint64_t next) {
    ssize_t got = read(c->fd, c->in + c->len, BUFFER - 1 - c->len);
    uint64_t now = now_ns();
    int closed = got == 0 || (got < 0 && errno == ECONNRESET);
    if (closed && !holding && (c->idle || (c->rested && !c->head && !c->len))) { dial_again(c); return; }
    if (got <= 0) { fail(c, got ? strerror(errno) : "the server closed the connection"); return; }
    c->len += (size_t)got;
    int ended = advance(c, now);
    if (ended < 0) { fail(c, "the answer is no HTTP"); return; }
    if (!ended) return;
    over(c, now);
    if (!next && !holding) ask(c, now);
}

static void make_request(const char *model, const char *key, long every_us) {
    char body[2048];
    int len = sprintf(body, "{\"model\":\"%s\",\"messages\":[{\"role\":\"system\",\"content\":\"You are helpful.\"},{\"role\":\"user\",\"content\":\"", model);
    while (len < 790) len += sprintf(body + len, "some words of a question ");
    len += sprintf(body + len, "\"}],\"temperature\":0.7,\"seed\":%ld,\"max_tokens\":%d%s}", every_us, chunks, streaming ? ",\"stream\":true" : "");
    request_len = (size_t)sprintf(request,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n"
        "User-Agent: OpenAI/Python 2.1.0\r\nAccept: application/json\r\nX-Stainless-Lang: python\r\nContent-Length: %d\r\n\r\n%s",
        port, key, len, body);
}

int main(int argc, char **argv) {
    if (argc < 8) { fprintf(stderr, "usage: client PORT MODE CONNECTIONS WARM_S SECONDS MODEL KEY [RATE [CHUNKS [EVERY_US]]]\n"); return 2; }
    signal(SIGPIPE, SIG_IGN);
    port = atoi(argv[1]);
    holding = !strcmp(argv[2], "hold");
    streaming = holding || !strcmp(argv[2], "stream");
    count = atoi(argv[3]);
    double rate = argc > 8 ? atof(argv[8]) : 0;
    if (argc > 9) chunks = atoi(argv[9]);
    long every_us = argc > 10 ? atol(argv[10]) : 5000;
    make_request(argv[6], argv[7], every_us);
    connections = calloc((size_t)count, sizeof *connections);
    epoll_fd = epoll_create1(0);
    uint64_t start = now_ns(), gap = rate > 0 ? (uint64_t)(1e9 / rate) : 0, next = gap ? start : 0;
    begin = start + (uint64_t)(atof(argv[4]) * 1e9);
    end = begin + (uint64_t)(atof(argv[5]) * 1e9);
    uint64_t spread = streaming && !holding ? (uint64_t)every_us * 1000 * (uint64_t)chunks / (uint64_t)count : 0;
    int started = 0, began = 0;
    struct epoll_event events[256];
    for (uint64_t now = start; now < end && !(holding && started == count && answered == count); now = now_ns()) {
        if (!began && now >= begin) { began = 1; printf("begin\n"); fflush(stdout); }
        for (; started < count && now >= start + spread * (uint64_t)started; started++) {
            dial(&connections[started]);
            if (gap) connections[started].idle = 1; else ask(&connections[started], now_ns());
        }
        for (int i = 0; gap && i < started && next <= now; i++)
            if (connections[i].idle) { ask(&connections[i], next); next += gap; }
        uint64_t until = began ? end : begin;
        if (gap && next > now && next < until) until = next;
        else if (gap && next <= now && until > now + 1000000) until = now + 1000000; /* all are busy */
        if (started < count && start + spread * (uint64_t)started < until) until = start + spread * (uint64_t)started;
        uint64_t left = until > now ? until - now : 0;
        struct timespec wait = {.tv_sec = (time_t)(left / 1000000000ull), .tv_nsec = (long)(left % 1000000000ull)};
        int n = epoll_pwait2(epoll_fd, events, 256, &wait, NULL);
        for (int i = 0; i < n; i++) readable(&connections[events[i].data.u32], next);
    }
    printf("end\n");
    printf("{\"requests\":%ld,\"errors\":%ld,\"seconds\":%.3f,\"chunks\":%ld,\"short_streams\":%ld,\"redialed\":%ld", answered, errors,
           (double)(end - begin) / 1e9, got_chunks, short_streams, redialed);
    tell("whole", &whole);
    if (streaming) { tell("first", &first); tell("delay", &delay); }
    for (char *c = error_text; *c; c++) if (*c == '"' || *c == '\\' || (unsigned char)*c < 32) *c = '\'';
    printf(",\"error\":\"%s\"}\n", error_text);
    return 0;
}
