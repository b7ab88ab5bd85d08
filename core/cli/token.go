package cli

import "context"

func (p *Program) tokenCommands() []*command {
	show := func(name string) *command {
		c := p.newCommand(name, "", "Print the key that clients show to the proxy").withJSON()
		c.about = `
Prints the key of this user's clients, for a client that is not started by "noria run". It opens the
proxy of this daemon and nothing else; it is no provider's credential.`
		c.examples = []string{"noria token show"}
		c.run = func(ctx context.Context, args, _ []string) error {
			if err := c.exactly(0, args); err != nil {
				return err
			}
			token, err := c.client().Token(ctx)
			switch {
			case err != nil:
				return err
			case c.json:
				return c.printJSON(token)
			}
			return c.printf("%s\n", text(token.Key))
		}
		return c
	}
	return []*command{show("token"), show("token show"), p.tokenRotate()}
}

func (p *Program) tokenRotate() *command {
	c := p.newCommand("token rotate", "", "Make another key for clients").withJSON()
	c.about = "Makes another key and prints it. The old one is refused from now on; clients of \"noria run\" have keys of their own and go on."
	c.examples = []string{"noria token rotate"}
	c.run = func(ctx context.Context, args, _ []string) error {
		if err := c.exactly(0, args); err != nil {
			return err
		}
		token, err := c.client().RotateToken(ctx)
		switch {
		case err != nil:
			return err
		case c.json:
			return c.printJSON(token)
		}
		return c.printf("%s\n", text(token.Key))
	}
	return c
}
