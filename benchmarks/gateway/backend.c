/* A model server for load tests: answers OpenAI chat requests from memory, as JSON or as a paced stream.

   Usage: backend PORT [PORT ...]; prints "ready" when it listens on 127.0.0.1.
   Of a request's body it reads "stream", "max_tokens" (how many chunks), "seed" (microseconds between two of them) and
   "include_usage". Each chunk's text begins with "@" and CLOCK_MONOTONIC in nanoseconds at the moment it is written. */
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

#define MAX_FD 16384
#define USAGE "{\"prompt_tokens\":100,\"completion_tokens\":64,\"total_tokens\":164,\"prompt_tokens_details\":{\"cached_tokens\":3}}"

typedef struct {
    char *in;
    size_t in_len, in_cap;
    char *out; /* what the socket did not take yet */
    size_t out_len, out_cap;
    int fd, left, usage, streaming, heap_at; /* heap_at: its place in the heap, -1 when no chunk is due */
    uint64_t due, every;
} Connection;

static Connection *connections[MAX_FD];
static Connection *heap[MAX_FD];
static int heap_len, epoll_fd, listening[8], listeners;
static char plain[4096];
static size_t plain_len;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void place(int at, Connection *c) { heap[at] = c; c->heap_at = at; }

static void sift(int at) {
    Connection *c = heap[at];
    for (; at > 0 && heap[(at - 1) / 2]->due > c->due; at = (at - 1) / 2) place(at, heap[(at - 1) / 2]);
    for (;;) {
        int child = 2 * at + 1;
        if (child + 1 < heap_len && heap[child + 1]->due < heap[child]->due) child++;
        if (child >= heap_len || heap[child]->due >= c->due) break;
        place(at, heap[child]);
        at = child;
    }
    place(at, c);
}

static void plan(Connection *c) {
    if (c->heap_at < 0) { place(heap_len, c); heap_len++; }
    sift(c->heap_at);
}

static void unplan(Connection *c) {
    int at = c->heap_at;
    if (at < 0) return;
    c->heap_at = -1;
    Connection *last = heap[--heap_len];
    if (last != c) { place(at, last); sift(at); }
}

static void drop(Connection *c) {
    unplan(c);
    connections[c->fd] = NULL;
    close(c->fd);
    free(c->in);
    free(c->out);
    free(c);
}

static void watch(Connection *c) {
    struct epoll_event e = {.events = EPOLLIN | (c->out_len ? EPOLLOUT : 0), .data.fd = c->fd};
    epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &e);
}

static void say(Connection *c, const char *data, size_t len) {
    ssize_t sent = c->out_len ? 0 : write(c->fd, data, len);
    if (sent < 0) sent = 0; /* a lost peer is seen when it is read */
    if ((size_t)sent == len) return;
    size_t rest = len - (size_t)sent;
    if (c->out_len + rest > c->out_cap) c->out = realloc(c->out, c->out_cap = 2 * (c->out_len + rest));
    memcpy(c->out + c->out_len, data + sent, rest);
    int was_empty = c->out_len == 0;
    c->out_len += rest;
    if (was_empty) watch(c);
}

static void flush(Connection *c) {
    ssize_t sent = write(c->fd, c->out, c->out_len);
    if (sent <= 0) return;
    memmove(c->out, c->out + sent, c->out_len - (size_t)sent);
    if (!(c->out_len -= (size_t)sent)) watch(c);
}

static size_t chunk(char *to, const char *data, size_t len) { return (size_t)sprintf(to, "%zx\r\n%.*s\r\n", len, (int)len, data); }

static void say_chunk(Connection *c) {
    char event[1024], wire[2048];
    size_t at = 0;
    if (c->left > 0) {
        int len = sprintf(event,
            "data: {\"id\":\"chatcmpl-0123456789abcdef\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m\","
            "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"@%llu some words of an answer\"},\"logprobs\":null,"
            "\"finish_reason\":%s}]}\n\n", (unsigned long long)now_ns(), c->left == 1 ? "\"stop\"" : "null");
        at = chunk(wire, event, (size_t)len);
        c->left--;
    }
    if (c->left == 0) {
        if (c->usage) {
            int len = sprintf(event, "data: {\"id\":\"chatcmpl-0123456789abcdef\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,"
                                     "\"model\":\"m\",\"choices\":[],\"usage\":" USAGE "}\n\n");
            at += chunk(wire + at, event, (size_t)len);
        }
        at += chunk(wire + at, "data: [DONE]\n\n", 14);
        at += (size_t)sprintf(wire + at, "0\r\n\r\n");
        c->streaming = 0;
        unplan(c);
    } else {
        c->due += c->every;
        plan(c);
    }
    say(c, wire, at);
}

static long field(const char *body, size_t len, const char *name, long missing) {
    const char *found = memmem(body, len, name, strlen(name));
    if (!found) return missing;
    for (found += strlen(name); *found == ' ' || *found == ':'; found++) {}
    return *found == 't' ? 1 : atol(found);
}

static void answer(Connection *c, int post, const char *body, size_t len) {
    if (!post) {
        static const char models[] = "{\"object\":\"list\",\"data\":[{\"id\":\"m\",\"object\":\"model\",\"max_model_len\":32768}]}";
        char wire[512];
        int n = sprintf(wire, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", sizeof models - 1, models);
        say(c, wire, (size_t)n);
    } else if (!field(body, len, "\"stream\"", 0)) {
        say(c, plain, plain_len);
    } else {
        static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n";
        say(c, head, sizeof head - 1);
        c->left = (int)field(body, len, "\"max_tokens\"", 64);
        c->every = (uint64_t)field(body, len, "\"seed\"", 5000) * 1000;
        c->usage = (int)field(body, len, "\"include_usage\"", 0);
        c->streaming = 1;
        c->due = now_ns() + c->every;
        plan(c);
    }
}

/* Answer the requests that are whole; bodies must come with a Content-Length. */
static void take(Connection *c) {
    while (!c->streaming && c->in_len) {
        c->in[c->in_len] = 0;
        char *end = strstr(c->in, "\r\n\r\n");
        if (!end) return;
        char *length = strcasestr(c->in, "\r\ncontent-length:");
        size_t head = (size_t)(end - c->in) + 4, body = length && length < end ? (size_t)atol(length + 17) : 0;
        if (c->in_len < head + body) return;
        char kept = c->in[head + body];
        c->in[head + body] = 0; /* ends the search for fields */
        answer(c, c->in[0] == 'P', c->in + head, body);
        c->in[head + body] = kept;
        memmove(c->in, c->in + head + body, c->in_len -= head + body);
    }
}

static void readable(Connection *c) {
    if (c->in_len + 8192 > c->in_cap) c->in = realloc(c->in, (c->in_cap = 2 * (c->in_len + 8192)) + 1);
    ssize_t got = read(c->fd, c->in + c->in_len, c->in_cap - c->in_len);
    if (got <= 0) {
        if (got == 0 || errno != EAGAIN) drop(c);
        return;
    }
    c->in_len += (size_t)got;
    take(c);
}

static void welcome(int listener) {
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        int on = 1;
        if (fd >= MAX_FD) { close(fd); continue; }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        Connection *c = connections[fd] = calloc(1, sizeof *c);
        c->fd = fd;
        c->heap_at = -1;
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e);
    }
}

static void listen_on(int port) {
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&where, sizeof where) || listen(fd, 4096)) { perror("backend"); exit(2); }
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e);
    listening[listeners++] = fd;
}

static int is_listener(int fd) {
    for (int i = 0; i < listeners; i++) if (listening[i] == fd) return 1;
    return 0;
}

static void make_plain(void) {
    char body[2048];
    int len = sprintf(body, "{\"id\":\"chatcmpl-0123456789abcdef\",\"object\":\"chat.completion\",\"created\":1700000000,\"model\":\"m\",\"choices\":[{\"index\":0,"
                            "\"message\":{\"role\":\"assistant\",\"content\":\"");
    while (len < 1290) len += sprintf(body + len, "some words of an answer ");
    len += sprintf(body + len, "\"},\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":" USAGE "}");
    plain_len = (size_t)sprintf(plain, "HTTP/1.1 200 OK\r\nServer: mock\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len, body);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    epoll_fd = epoll_create1(0);
    make_plain();
    for (int i = 1; i < argc && i < 9; i++) listen_on(atoi(argv[i]));
    printf("ready\n");
    fflush(stdout);
    struct epoll_event events[256];
    for (;;) {
        struct timespec wait, *limit = NULL;
        if (heap_len) {
            uint64_t now = now_ns(), left = heap[0]->due > now ? heap[0]->due - now : 0;
            wait.tv_sec = (time_t)(left / 1000000000ull);
            wait.tv_nsec = (long)(left % 1000000000ull);
            limit = &wait;
        }
        int n = epoll_pwait2(epoll_fd, events, 256, limit, NULL);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (is_listener(fd)) { welcome(fd); continue; }
            Connection *c = connections[fd];
            if (c && events[i].events & EPOLLOUT && c->out_len) flush(c);
            if (c && events[i].events & ~(uint32_t)EPOLLOUT) readable(c);
        }
        uint64_t now = now_ns();
        for (int i = 0; i < 512 && heap_len && heap[0]->due <= now; i++) {
            Connection *c = heap[0];
            say_chunk(c);
            if (!c->streaming) take(c);
        }
    }
}
