/* The worker of the comparison: HTTP/1.1, one thread, epoll, answers like llama-server.

   stub PORT. A body with "stream":true gets "max_tokens" events, "seed" milliseconds apart (0: at
   once, each in a write of its own); any other body the same answer in one piece. A GET gets a page
   that satisfies every router's health check. Content begins with @ and the monotonic nanoseconds
   at which it was sent, so that a client on the same machine can tell how long it was under way. */
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

#define MAX_FDS 4096
#define ROOM (1 << 20)

struct connection {
    char *data;
    size_t size;
    int left;         /* events still to send */
    int first;        /* the next event is the first one */
    int64_t gap, due; /* nanoseconds */
};

static struct connection *connections[MAX_FDS];
static int streaming[MAX_FDS], streams, poller;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void drop(int fd) {
    for (int i = 0; i < streams; i++)
        if (streaming[i] == fd) streaming[i--] = streaming[--streams];
    close(fd);
    free(connections[fd]->data);
    free(connections[fd]);
    connections[fd] = NULL;
}

static int put(int fd, const char *data, size_t size) {
    while (size) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            usleep(200);
            continue;
        }
        if (n < 0) return -1;
        data += n;
        size -= n;
    }
    return 0;
}

#define TAIL "\"created\":1795979908,\"id\":\"chatcmpl-txzUyP0dUxC8jQkyFFcw4QDElSoZnCp1\"," \
    "\"model\":\"tiny\",\"system_fingerprint\":\"b0\",\"object\":"
#define TIMINGS "\"timings\":{\"cache_n\":0,\"prompt_n\":20,\"prompt_ms\":10.0,\"predicted_n\":%d," \
    "\"predicted_ms\":%d.0,\"draft_n\":4,\"draft_n_accepted\":1}"
#define USAGE "\"usage\":{\"completion_tokens\":%d,\"prompt_tokens\":20,\"total_tokens\":%d}"

static int put_event(int fd, struct connection *c) {
    char event[1024], framed[1100];
    const char *role = c->first ? "\"role\":\"assistant\"," : "";
    int n = snprintf(event, sizeof event,
        "data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{%s\"content\":\"@%lld \"}}],"
        TAIL "\"chat.completion.chunk\"}\n\n", role, (long long)now());
    c->first = 0;
    int m = snprintf(framed, sizeof framed, "%x\r\n%s\r\n", n, event);
    return put(fd, framed, m);
}

static int put_end(int fd, int tokens) {
    char event[1024], framed[1200];
    int n = snprintf(event, sizeof event,
        "data: {\"choices\":[{\"finish_reason\":\"stop\",\"index\":0,\"delta\":{}}]," TAIL
        "\"chat.completion.chunk\"," USAGE "," TIMINGS "}\n\ndata: [DONE]\n\n",
        tokens, tokens + 20, tokens, tokens * 10);
    int m = snprintf(framed, sizeof framed, "%x\r\n%s\r\n0\r\n\r\n", n, event);
    return put(fd, framed, m);
}

static int put_page(int fd, const char *body) {
    char answer[2048];
    int m = snprintf(answer, sizeof answer,
        "HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nContent-Type: application/json\r\n"
        "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
    return put(fd, answer, m);
}

static int put_plain(int fd, int tokens) {
    char body[1536];
    snprintf(body, sizeof body,
        "{\"choices\":[{\"finish_reason\":\"stop\",\"index\":0,\"message\":{\"role\":\"assistant\","
        "\"content\":\"@%lld \"}}]," TAIL "\"chat.completion\"," USAGE "," TIMINGS "}",
        (long long)now(), tokens, tokens + 20, tokens, tokens * 10);
    return put_page(fd, body);
}

static int number(const char *text, const char *name) {
    const char *at = strstr(text, name);
    if (!at) return 0;
    at += strlen(name);
    while (*at == '"' || *at == ':' || *at == ' ') at++;
    return atoi(at);
}

static int is_stream(const char *body) {
    const char *at = strstr(body, "\"stream\"");
    if (!at) return 0;
    at += 8;
    while (*at == ':' || *at == ' ') at++;
    return strncmp(at, "true", 4) == 0;
}

static int answer(int fd, struct connection *c, const char *body) {
    int tokens = number(body, "\"max_tokens\"");
    if (tokens < 1) tokens = number(body, "\"max_completion_tokens\"");
    if (tokens < 1) tokens = 1;
    if (!is_stream(body)) return put_plain(fd, tokens);
    static const char head[] =
        "HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nContent-Type: text/event-stream\r\n"
        "Transfer-Encoding: chunked\r\n\r\n";
    if (put(fd, head, sizeof head - 1)) return -1;
    c->left = tokens;
    c->first = 1;
    c->gap = (int64_t)number(body, "\"seed\"") * 1000000;
    c->due = now();
    if (c->gap) {
        streaming[streams++] = fd;
        return 0;
    }
    while (c->left-- > 0)
        if (put_event(fd, c)) return -1;
    return put_end(fd, tokens);
}

/* Whether the buffer held a whole request, which is then answered; -1 when the peer is lost. */
static int serve(int fd, struct connection *c) {
    c->data[c->size] = 0;
    char *end = memmem(c->data, c->size, "\r\n\r\n", 4);
    if (!end) return 0;
    char *body = end + 4;
    size_t length = 0, head = body - c->data;
    for (char *at = c->data; at < end; at++)
        if (*at == '\n' && !strncasecmp(at + 1, "content-length:", 15)) length = atol(at + 16);
    if (c->size < head + length) return 0;
    int lost;
    if (!strncmp(c->data, "GET", 3))
        lost = put_page(fd, "{\"status\":\"ok\",\"object\":\"list\",\"data\":[{\"id\":\"tiny\","
            "\"object\":\"model\",\"owned_by\":\"us\"}],\"model_path\":\"tiny\",\"is_generation\":true}");
    else {
        char saved = body[length];
        body[length] = 0;
        lost = answer(fd, c, body);
        body[length] = saved;
    }
    memmove(c->data, c->data + head + length, c->size - head - length);
    c->size -= head + length;
    return lost ? -1 : 1;
}

static void read_from(int fd) {
    struct connection *c = connections[fd];
    for (;;) {
        ssize_t n = recv(fd, c->data + c->size, ROOM - 1 - c->size, 0);
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) {
            drop(fd);
            return;
        }
        c->size += n;
        int done;
        while ((done = serve(fd, c)) > 0) {}
        if (done < 0) {
            drop(fd);
            return;
        }
    }
}

static void pace(void) {
    int64_t at = now();
    for (int i = 0; i < streams; i++) {
        int fd = streaming[i];
        struct connection *c = connections[fd];
        if (c->due > at) continue;
        c->due += c->gap;
        if (c->left-- > 0) {
            if (put_event(fd, c)) drop(fd), i--;
            continue;
        }
        streaming[i--] = streaming[--streams];
        if (put_end(fd, 8)) drop(fd);
    }
}

static void take(int listener) {
    int fd, on = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        if (fd >= MAX_FDS) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct connection *c = connections[fd] = calloc(1, sizeof *c);
        c->data = malloc(ROOM);
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e);
    }
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1024)) {
        perror("stub");
        return 1;
    }
    poller = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = listener}, ready[256];
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &e);
    for (;;) {
        int n = epoll_wait(poller, ready, 256, streams ? 1 : 1000);
        for (int i = 0; i < n; i++) {
            if (ready[i].data.fd == listener) take(listener);
            else if (connections[ready[i].data.fd]) read_from(ready[i].data.fd);
        }
        if (streams) pace();
    }
}
